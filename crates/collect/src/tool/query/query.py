"""Runs one SELECT over Parquet tables for llm-perf, on DuckDB, DataFusion or a Ballista cluster.

Usage: python query.py REQUEST.json
REQUEST.json has the tables with their files and columns, the views, and the statement. The answer leaves as JSON lines on the
file descriptor that LLM_PERF_CHANNEL names, or as a Parquet file where one is asked for. The statement reads what the request
names and nothing else: no other file, no setting, no extension.
"""

import json
import math
import os
import sys
import time
import traceback

PROTOCOL = 1
# Rows in a line of the answer.
CHUNK = 256
# How long it is looked for the file that an engine could not read and did not name.
SEARCH_SECONDS = 20
# What Python and an engine take before the first row, in bytes.
FOOTING = 6 << 30
# What a column is in a file, and how both engines name it.
PHYSICAL = {"INTEGER": "INT32", "BIGINT": "INT64", "VARCHAR": "BYTE_ARRAY", "BOOLEAN": "BOOLEAN"}


class Refused(Exception):
    """Something the user can put right; `kind` says what."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Channel:
    """One JSON object a line, to whoever started this."""

    def __init__(self):
        number = os.environ.pop("LLM_PERF_CHANNEL", None)
        self.out = open(os.devnull, "w") if number is None else os.fdopen(int(number), "w", encoding="utf-8")
        if number is not None:
            os.set_inheritable(int(number), False)

    def tell(self, event, **facts):
        self.out.write(json.dumps({"event": event, **facts}) + "\n")
        self.out.flush()


def text(value):
    """A text as a literal of SQL."""
    return "'%s'" % value.replace("'", "''")


def name(value):
    """A name as SQL quotes it."""
    return '"%s"' % value.replace('"', '""')


def plain(value):
    """A value as JSON has it. What JSON cannot say is a text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if type(value).__name__ == "Decimal":
        return plain(float(value))
    return str(value)


def empty(columns):
    """A table that no file holds, with its columns."""
    return "SELECT %s WHERE 1 = 0" % ", ".join("CAST(NULL AS %s) AS %s" % (kind, name(one)) for one, kind in with_job(columns))


def with_job(columns):
    """The columns of a table as they are queried: the job is in the name of the folder."""
    return [("job", "VARCHAR")] + [(one, kind) for one, kind in columns if one != "job"]


def check_file(path, found, metadata, table, schema):
    """Whether a file holds a table; `found` has the physical type of each column."""
    told = metadata.get("llm-perf.schema")
    if told != schema:
        what = "it is not an llm-perf table" if told is None else "its schema is %s" % told
        raise Refused("table", "cannot read %s: %s; expected %s" % (path, what, schema))
    if metadata.get("llm-perf.table") != table["name"]:
        raise Refused("table", "cannot read %s: it contains the table %s" % (path, metadata.get("llm-perf.table")))
    for column, kind in table["columns"]:
        if found.get(column) != PHYSICAL[kind]:
            problem = "is missing" if column not in found else "has type %s, not %s" % (found[column], PHYSICAL[kind])
            raise Refused("table", "cannot read %s: its column `%s` %s" % (path, column, problem))


def search(tables, read):
    """Names the file that cannot be read, where one is found in time."""
    deadline = time.monotonic() + SEARCH_SECONDS
    for table in tables:
        for file in table["files"]:
            if time.monotonic() > deadline:
                return
            try:
                read(file["path"])
            except Exception as error:
                raise Refused("table", "cannot read %s: %s" % (file["path"], first_line(error))) from error


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# ----------------------------------------------------------------------------------------------------------------- DuckDB


class DuckDb:
    """In this process; what is locked is locked before the user's statement is looked at."""

    def __init__(self, request):
        import duckdb

        self.duckdb, self.request, self.version = duckdb, request, duckdb.__version__
        settings = {
            "memory_limit": "%dB" % request["memory_bytes"],
            "temp_directory": request["temporary"],
            "extension_directory": request["temporary"],
            "secret_directory": request["temporary"],
            "allow_persistent_secrets": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        }
        try:
            self.connection = duckdb.connect(":memory:", config=settings)
            self.connection.execute("SET python_enable_replacements = false")
            for table in request["tables"]:
                self.check(table)
                self.connection.execute("CREATE VIEW %s AS %s" % (name(table["name"]), self.table(table)))
            for view, sql in request["views"]:
                self.connection.execute("CREATE VIEW %s AS %s" % (name(view), sql))
            allowed = ", ".join(text(folder) for folder in request["folders"] + [request["temporary"]])
            self.connection.execute("SET allowed_directories = [%s]" % allowed)
            self.connection.execute("SET enable_external_access = false")
            self.connection.execute("SET lock_configuration = true")
        except (duckdb.CatalogException, duckdb.InvalidInputException) as error:
            if "unrecognized configuration parameter" in str(error).lower():
                message = "duckdb %s cannot be restricted to the given folders: %s" % (self.version, first_line(error))
                raise Refused("engine", message) from error
            raise

    def check(self, table):
        paths = [file["path"] for file in table["files"]]
        if not paths:
            return
        listed = "[%s]" % ", ".join(map(text, paths))
        try:
            columns = self.connection.execute("SELECT file_name, name, type FROM parquet_schema(%s)" % listed).fetchall()
            told = self.connection.execute("SELECT file_name, key, value FROM parquet_kv_metadata(%s)" % listed).fetchall()
        except self.duckdb.Error:
            search([table], lambda path: self.connection.execute("SELECT * FROM parquet_schema([%s])" % text(path)).fetchall())
            raise
        found, metadata = {path: {} for path in paths}, {path: {} for path in paths}
        for path, column, kind in columns:
            if kind is not None:
                found[path][column] = kind
        for path, key, value in told:
            metadata[path][bytes(key).decode("utf-8", "replace")] = bytes(value).decode("utf-8", "replace")
        for path in paths:
            check_file(path, found[path], metadata[path], table, self.request["schema"])

    def table(self, table):
        """All files of a table, job by job, so that a condition on the job leaves the others' files alone."""
        jobs = {}
        for file in table["files"]:
            jobs.setdefault(file["job"], []).append(text(file["path"]))
        columns = ", ".join(name(one) for one, _ in with_job(table["columns"])[1:])
        # Names of folders are not read as columns: a rank without number would make a text of it.
        of_job = "SELECT %s AS job, %s FROM read_parquet([%s], hive_partitioning = false)"
        parts = [of_job % (text(job), columns, ", ".join(paths)) for job, paths in jobs.items()]
        return " UNION ALL ".join(parts) or empty(table["columns"])

    def single(self, sql):
        statements = self.connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != self.duckdb.StatementType.SELECT:
            raise Refused("statement", "expected exactly one SELECT")

    def rows(self, sql):
        """Names and types of the columns, then the rows."""
        result = self.connection.execute(sql)
        yield [(one[0], str(one[1])) for one in result.description]
        while True:
            chunk = result.fetchmany(CHUNK)
            if not chunk:
                return
            yield from chunk

    def write(self, sql, path):
        # Sums are wider than any type of Parquet, which would make them doubles.
        narrowed = []
        relation = self.connection.sql(sql)
        for place, (column, kind) in enumerate(zip(relation.columns, relation.types), 1):
            narrowed.append(("CAST(#%d AS BIGINT) AS %s" if str(kind) == "HUGEINT" else "#%d AS %s") % (place, name(column)))
        source = "SELECT %s FROM (%s\n)" % (", ".join(narrowed), sql)
        count = self.connection.execute("COPY (%s) TO %s (FORMAT parquet, COMPRESSION zstd)" % (source, text(path))).fetchone()
        return count[0]

    def classify(self, error):
        known = self.duckdb
        wrong = (known.ParserException, known.BinderException, known.CatalogException, known.PermissionException,
                 known.ConversionException, known.OutOfRangeException, known.SyntaxException, known.NotImplementedException)
        if isinstance(error, known.OutOfMemoryException):
            return "memory"
        return "sql" if isinstance(error, wrong) else "engine_failed"

    def read_whole(self, path):
        source = "read_parquet([%s], hive_partitioning = false)" % text(path)
        columns = self.connection.execute("DESCRIBE SELECT * FROM " + source).fetchall()
        sums = ", ".join("MAX(%s)" % name(column[0]) for column in columns)
        self.connection.execute("SELECT %s FROM %s" % (sums, source)).fetchall()


# ------------------------------------------------------------------------------------------------- DataFusion and Ballista


class DataFusion:
    """In this process, or on a cluster where the request has an address: there the executors read the files."""

    def __init__(self, request):
        import datafusion
        import pyarrow
        import pyarrow.parquet

        self.datafusion, self.pyarrow, self.request, self.version = datafusion, pyarrow, request, datafusion.__version__
        self.context = self.connect()
        for table in request["tables"]:
            self.check(table)
            self.view(table["name"], self.table(table))
        for view, sql in request["views"]:
            self.view(view, sql)

    def connect(self):
        runtime = self.datafusion.RuntimeEnvBuilder().with_temp_file_path(self.request["temporary"])
        runtime = runtime.with_fair_spill_pool(self.request["memory_bytes"])
        return self.datafusion.SessionContext(self.datafusion.SessionConfig(), runtime)

    def view(self, view, sql):
        self.context.register_view(view, self.context.sql(sql))

    def check(self, table):
        for file in table["files"]:
            path = file["path"]
            try:
                opened = self.pyarrow.parquet.ParquetFile(path)
                leaves = [opened.schema.column(place) for place in range(len(opened.schema))]
                metadata = opened.metadata.metadata or {}
            except Exception as error:
                raise Refused("table", "cannot read %s: %s" % (path, first_line(error))) from error
            decoded = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in metadata.items()}
            check_file(path, {leaf.name: leaf.physical_type for leaf in leaves}, decoded, table, self.request["schema"])

    def table(self, table):
        """Folders are listed by the engine itself, so that conditions on job and rank leave the others' files alone."""
        columns = with_job(table["columns"])[1:]
        listed, parts = {}, []
        for file in table["files"]:
            if file["root"] is not None:
                listed.setdefault(file["root"], set()).add(file["job"])
            else:
                part = "files %s %d" % (table["name"], len(parts))
                self.context.register_parquet(part, file["path"], schema=self.schema(table["columns"]))
                chosen = ", ".join(name(one) for one, _ in columns)
                parts.append("SELECT %s AS job, %s FROM %s" % (text(file["job"]), chosen, name(part)))
        string = self.pyarrow.string()
        for root, jobs in listed.items():
            part = "files %s %d" % (table["name"], len(parts))
            self.context.register_listing_table(
                part,
                root + "/",
                table_partition_cols=[("job", string), ("rank", string)],
                file_extension="/%s.parquet" % table["name"],
                schema=self.schema([column for column in columns if column[0] != "rank"]),
            )
            # A run without ranks has no number in the name of its folder.
            rank = "TRY_CAST(rank AS INTEGER) AS rank"
            chosen = ", ".join(rank if one == "rank" else name(one) for one, _ in columns)
            condition = " OR ".join("job = %s" % text(job) for job in sorted(jobs))
            parts.append("SELECT job, %s FROM %s WHERE %s" % (chosen, name(part), condition))
        return " UNION ALL ".join(parts) or empty(table["columns"])

    def schema(self, columns):
        arrow = self.pyarrow
        types = {"INTEGER": arrow.int32(), "BIGINT": arrow.int64(), "VARCHAR": arrow.string(), "BOOLEAN": arrow.bool_()}
        return arrow.schema([(one, types[kind]) for one, kind in columns])

    def single(self, sql):
        """The engine refuses more than one statement by itself, and the options everything that changes something."""

    def frame(self, sql):
        options = self.datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        return self.context.sql_with_options(sql, options)

    def batches(self, frame):
        for batch in frame.execute_stream():
            yield batch.to_pyarrow()

    def rows(self, sql):
        frame = self.frame(sql)
        yield [(field.name, str(field.type)) for field in frame.schema()]
        for batch in self.batches(frame):
            yield from zip(*[column.to_pylist() for column in batch.columns])

    def write(self, sql, path):
        frame = self.frame(sql)
        schema, count = frame.schema(), 0
        with self.pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as out:
            for batch in self.batches(frame):
                out.write_batch(batch.cast(schema) if batch.schema != schema else batch)
                count += batch.num_rows
        return count

    def classify(self, error):
        message = str(error)
        if "Resources exhausted" in message:
            return "memory"
        wrong = ("SQL error", "Error during planning", "Schema error", "This feature is not implemented", "Cast error",
                 "Invalid function", "type_coercion", "Divide by zero")
        return "sql" if any(one in message for one in wrong) else "engine_failed"

    def read_whole(self, path):
        for batch in self.pyarrow.parquet.ParquetFile(path).iter_batches():
            del batch


class Ballista(DataFusion):
    """The plan is made here and run by the executors."""

    def connect(self):
        import ballista

        self.version = "%s, datafusion %s" % (ballista.__version__, self.version)
        try:
            return ballista.BallistaSessionContext(self.request["address"])
        except Exception as error:
            message = "cannot reach the scheduler %s: %s" % (self.request["address"], first_line(error))
            raise Refused("cluster", message) from error

    def batches(self, frame):
        # The only way in which a plan leaves this process; streaming would run it here.
        yield from frame.collect()

    def classify(self, error):
        kind = super().classify(error)
        return "cluster" if kind == "engine_failed" else kind


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "ballista": Ballista}


def attend(request, channel):
    limit_memory(request["memory_bytes"])
    try:
        engine = ENGINES[request["engine"]](request)
    except ImportError as error:
        raise Refused("engine", "cannot import %s: %s" % (request["engine"], first_line(error))) from error
    channel.tell("hello", protocol=PROTOCOL, python=sys.version.split()[0], engine=request["engine"], version=engine.version)
    try:
        engine.single(request["sql"])
        if request["parquet"] is not None:
            channel.tell("done", rows=engine.write(request["sql"], request["parquet"]), more=False)
        else:
            answer(engine.rows(request["sql"]), request["limit"], channel)
    except Refused:
        raise
    except Exception as error:
        kind = engine.classify(error)
        if kind in ("engine_failed", "cluster"):
            search(request["tables"], engine.read_whole)
        raise Refused(kind, str(error).strip()) from error


def answer(rows, limit, channel):
    columns = next(rows)
    channel.tell("columns", names=[one for one, _ in columns], types=[kind for _, kind in columns])
    chunk, count, more = [], 0, False
    for row in rows:
        if count == limit:
            more = True
            break
        chunk.append([plain(value) for value in row])
        count += 1
        if len(chunk) == CHUNK:
            channel.tell("rows", rows=chunk)
            chunk = []
    if chunk:
        channel.tell("rows", rows=chunk)
    channel.tell("done", rows=count, more=more)


def limit_memory(size):
    """The last resort behind the engine's own limit, against files that make a reader ask for more than there is."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size * 2 + FOOTING, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    except (ImportError, ValueError, OSError):
        pass


def main():
    channel = Channel()
    try:
        with open(sys.argv[1], encoding="utf-8") as given:
            request = json.load(given)
        attend(request, channel)
        return 0
    except Refused as error:
        channel.tell("failed", kind=error.kind, message=str(error))
    except MemoryError:
        channel.tell("failed", kind="memory", message="out of memory")
    except BrokenPipeError:
        return 1
    except BaseException as error:
        channel.tell("failed", kind="engine_failed", message="%s: %s" % (type(error).__name__, error))
        traceback.print_exc()
    return 1


if __name__ == "__main__":
    sys.exit(main())
