//! Loads on a server that behaves well, badly or not at all.

mod server;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use llm_perf_load::{
    Arrivals, Ask, Image, Lengths, LoadError, Outcome, Plan, Progress, Prompt, Prompts, Server, get_text, post, run,
    wait_until_ready,
};
use types::{Nanos, RequestClock, RequestRecord, RequestSource};

use server::{Behaviour, Fault, TestServer};

const CLOSED: Arrivals = Arrivals::Closed { concurrency: 3 };

/// A plan with short random prompts.
fn plan(server: Server, arrivals: Arrivals, requests: usize) -> Plan {
    let prompts = Prompts::Random { input: Lengths::Uniform(3, 9), output: Lengths::Fixed(4) };
    let plan = Plan::new(server, "tiny", arrivals, prompts, requests);
    Plan { vocabulary: 10..1000, timeout: Duration::from_secs(60), ..plan }
}

/// Runs a plan to its end.
fn sent(plan: &Plan) -> Outcome {
    run(plan, &AtomicBool::new(false), &mut |_| ()).unwrap()
}

/// The records of a few requests to a server with one fault.
fn records_with(fault: Fault) -> Vec<RequestRecord> {
    let server = TestServer::start(Behaviour { fault, ..Behaviour::default() });
    let records = sent(&plan(server.server(), CLOSED, 6)).log.requests;
    assert_eq!(records.len(), 6);
    records
}

/// The error that every request to a server with one fault has.
fn error_of(fault: Fault) -> String {
    let mut errors: Vec<_> = records_with(fault).into_iter().map(|record| record.error.unwrap()).collect();
    errors.dedup();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

/// What holds of every request that succeeded.
fn assert_complete(record: &RequestRecord, tokens: usize) {
    assert!(record.succeeded(), "{record:?}");
    assert_eq!((record.chunks_ns.len(), record.output_tokens), (tokens, Some(tokens as u64)));
    assert!(record.chunks_ns.is_sorted() && record.chunks_ns[0] > Nanos::ZERO, "{record:?}");
    assert!(record.end_ns >= record.latency() && record.sent_ns >= record.due_ns, "{record:?}");
}

#[test]
fn a_closed_loop_keeps_its_concurrency_and_its_connections() {
    let server = TestServer::start(Behaviour::default());
    let outcome = sent(&plan(server.server(), CLOSED, 20));
    assert_eq!((outcome.log.source, outcome.log.clock), (RequestSource::LlmPerf, RequestClock::Monotonic));
    assert_eq!(outcome.log.requests.len(), 20);
    outcome.log.requests.iter().for_each(|record| assert_complete(record, 4));
    assert!(outcome.log.requests.iter().all(|record| record.input_tokens == Some(9)));
    assert!(server.connections() <= 3, "{} connections", server.connections());
    let spans = outcome
        .log
        .requests
        .iter()
        .map(|record| (record.due_ns.unwrap(), record.due_ns.unwrap() + record.end_ns.unwrap()));
    let spans: Vec<_> = spans.collect();
    let at_once = |time: Nanos| spans.iter().filter(|(start, end)| (*start..*end).contains(&time)).count();
    assert!(spans.iter().all(|(start, _)| at_once(*start) <= 3), "{spans:?}");
    let (first, last) = (spans.iter().map(|span| span.0).min(), spans.iter().map(|span| span.1).max());
    assert!(outcome.log.duration_ns.unwrap() >= last.unwrap() - first.unwrap());
}

#[test]
fn an_open_loop_sends_at_its_times_and_counts_from_them() {
    let server = TestServer::start(Behaviour::default());
    let times: Vec<_> = (0..10).map(|number| Nanos::new(number * 7_000_000)).collect();
    let outcome = sent(&plan(server.server(), Arrivals::At(times.clone()), 10));
    let due: Vec<_> = outcome.log.requests.iter().map(|record| record.due_ns.unwrap()).collect();
    let since_first: Vec<_> = due.iter().map(|time| *time - due[0]).collect();
    assert_eq!(since_first, times);
    outcome.log.requests.iter().for_each(|record| assert_complete(record, 4));
    assert!(outcome.log.duration_ns.unwrap() > times[9]);
    assert!(outcome.clocks.monotonic_ns <= due[0]);
}

#[test]
fn the_same_plan_sends_the_same_requests() {
    let bodies = || {
        let server = TestServer::start(Behaviour::default());
        sent(&plan(server.server(), Arrivals::Closed { concurrency: 1 }, 5));
        server.requests()
    };
    let first = bodies();
    assert_eq!(first, bodies());
    assert_eq!((first.len(), first[0].0.as_str()), (5, "/v1/completions"));
    assert_eq!((&first[0].1["model"], &first[0].1["max_tokens"]), (&"tiny".into(), &4.into()));
    assert!(first[0].1["prompt"].as_array().unwrap().iter().all(|id| (10..1000).contains(&id.as_u64().unwrap())));
}

#[test]
fn a_chat_with_an_image_is_answered() {
    let server = TestServer::start(Behaviour::default());
    let image = Image::new(&[0x89, b'P', b'N', b'G']).unwrap();
    let ask = Ask { prompt: Prompt::Chat { text: "what?".to_owned(), images: vec![image] }, max_tokens: 4 };
    let plan = Plan { prompts: Prompts::Listed(vec![ask]), ..plan(server.server(), CLOSED, 2) };
    sent(&plan).log.requests.iter().for_each(|record| assert_complete(record, 4));
    assert_eq!(server.requests()[0].0, "/v1/chat/completions");
}

#[test]
fn a_request_is_recorded_with_the_reason_it_failed_for() {
    let status = error_of(Fault::Status);
    assert_eq!(status, format!("HTTP status 500: no luck{}", "!".repeat(193)));
    assert_eq!(error_of(Fault::HalfAStream), "the stream ended in the middle");
    assert_eq!(error_of(Fault::HalfAStreamCleanly), "the stream ended in the middle");
    assert_eq!(error_of(Fault::ErrorEvent), "the server reports an error: {\"message\":\"lost\"}");
    assert_eq!(error_of(Fault::NoOutput), "the response has no output");
    let expected =
        "the response is not a stream of events but `application/json`: {\"choices\": [{\"text\": \"all\"}]}";
    assert_eq!(error_of(Fault::NoStream), expected);
}

#[test]
fn a_request_that_hangs_is_ended_and_keeps_what_came() {
    for (fault, chunks) in [(Fault::Hang, 0), (Fault::HangInTheMiddle, 2)] {
        let server = TestServer::start(Behaviour { fault, ..Behaviour::default() });
        let plan = Plan { timeout: Duration::from_millis(1500), ..plan(server.server(), CLOSED, 3) };
        for record in sent(&plan).log.requests {
            assert_eq!((record.error.as_deref(), record.chunks_ns.len()), (Some("timed out after 1.5 s"), chunks));
            assert!(record.end_ns > record.latency());
        }
    }
}

#[test]
fn a_server_that_does_not_count_leaves_the_output_tokens_unknown() {
    for record in records_with(Fault::NoUsage) {
        assert!(record.succeeded() && record.chunks_ns.len() == 4, "{record:?}");
        assert_eq!(record.output_tokens, None);
        assert!((3..=9).contains(&record.input_tokens.unwrap()));
    }
}

#[test]
fn a_server_that_closes_or_accepts_slowly_loses_no_request() {
    for fault in [Fault::CloseAfterEach, Fault::SlowAccept] {
        records_with(fault).iter().for_each(|record| assert_complete(record, 4));
    }
}

/// An address where nothing listens.
fn nobody() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::new(&listener.local_addr().unwrap().to_string()).unwrap()
}

#[test]
fn a_refused_connection_is_recorded() {
    let everything = Arrivals::Closed { concurrency: usize::MAX };
    let records = [everything, Arrivals::Constant { rate: 1000.0 }]
        .map(|arrivals| sent(&plan(nobody(), arrivals, 3)).log.requests);
    assert!(records.iter().all(|records| records.len() == 3));
    for record in records.into_iter().flatten() {
        let error = record.error.unwrap();
        assert!(error.starts_with("cannot connect to 127.0.0.1:") && error.contains("refused"), "{error}");
    }
}

#[test]
fn a_load_that_is_stopped_keeps_what_it_measured() {
    for arrivals in [CLOSED, Arrivals::Constant { rate: 100.0 }] {
        let server = TestServer::start(Behaviour { interval: Duration::from_millis(20), ..Behaviour::default() });
        let stop = AtomicBool::new(false);
        let mut stop_early = |progress: Progress| stop.store(progress.ended >= 3, Ordering::Relaxed);
        let plan = plan(server.server(), arrivals, 1_000_000);
        let records = run(&plan, &stop, &mut stop_early).unwrap().log.requests;
        assert!(records.len() < 1_000_000 && records.iter().filter(|record| record.succeeded()).count() >= 3);
        let stopped = |record: &&RequestRecord| record.error.as_deref() == Some("stopped before the response ended");
        let others = records.iter().filter(|record| !record.succeeded() && !stopped(record)).count();
        assert_eq!(others, 0, "{records:?}");
    }
}

#[test]
fn progress_counts_what_ended_and_what_failed() {
    let server = TestServer::start(Behaviour { fault: Fault::Status, ..Behaviour::default() });
    let mut reported = Vec::new();
    run(&plan(server.server(), CLOSED, 5), &AtomicBool::new(false), &mut |progress| reported.push(progress)).unwrap();
    let last = reported.last().unwrap();
    assert_eq!((last.planned, last.ended, last.failed), (5, 5, 5));
}

#[test]
fn two_thousand_streams_run_at_once() {
    let behaviour = Behaviour { tokens: 5, interval: Duration::from_millis(100), ..Behaviour::default() };
    let server = TestServer::start(behaviour);
    let outcome = sent(&plan(server.server(), Arrivals::Closed { concurrency: 2000 }, 2000));
    assert_eq!(outcome.log.requests.len(), 2000);
    outcome.log.requests.iter().for_each(|record| assert_complete(record, 5));
}

#[test]
fn the_server_can_be_told_things_while_a_load_runs() {
    let server = TestServer::start(Behaviour { interval: Duration::from_millis(20), ..Behaviour::default() });
    let stop = Arc::new(AtomicBool::new(false));
    let plan = plan(server.server(), CLOSED, 1_000_000);
    let load = std::thread::spawn({
        let stop = stop.clone();
        move || run(&plan, &stop, &mut |_| ()).unwrap()
    });
    while server.requests().is_empty() {
        std::thread::yield_now();
    }
    let answer = post(&server.server(), "/start_profile", "{}", Duration::from_secs(60)).unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    let metrics = get_text(&server.server(), "/metrics", Duration::from_secs(60)).unwrap();
    assert_eq!(metrics.body, "vllm:num_requests_running 3.0\n");
    stop.store(true, Ordering::Relaxed);
    assert!(!load.join().unwrap().log.requests.is_empty());
}

#[test]
fn a_server_is_awaited_until_it_is_ready() {
    let limit = Duration::from_secs(60);
    let expected = Some("tiny".to_owned());
    let loading = TestServer::start(Behaviour { loading: 2, ..Behaviour::default() });
    let mut checks = 0;
    let mut count = || {
        checks += 1;
        true
    };
    assert_eq!(wait_until_ready(&loading.server(), limit, &mut count).unwrap(), expected);
    assert_eq!(checks, 2);
    let without_health = TestServer::start(Behaviour { fault: Fault::NoHealth, ..Behaviour::default() });
    assert_eq!(wait_until_ready(&without_health.server(), limit, &mut || false).unwrap(), expected);
}

#[test]
fn a_server_that_never_gets_ready_is_given_up() {
    let loading = TestServer::start(Behaviour { loading: usize::MAX, ..Behaviour::default() });
    let error = wait_until_ready(&loading.server(), Duration::from_millis(300), &mut || true).unwrap_err();
    let expected =
        format!("http://{} was not ready within 0.3 s: /health answers with HTTP status 503", loading.address);
    assert_eq!(error.to_string(), expected);
    let error = wait_until_ready(&nobody(), Duration::from_secs(60), &mut || false).unwrap_err();
    assert!(matches!(&error, LoadError::Exited { last, .. } if last.contains("refused")), "{error}");
}

#[test]
fn a_plan_that_cannot_be_sent_is_rejected_before_anything_is_sent() {
    let wrong = [
        plan(nobody(), CLOSED, 0),
        plan(nobody(), CLOSED, usize::MAX),
        plan(nobody(), Arrivals::Constant { rate: 0.0 }, 1),
        Plan { vocabulary: 0..0, ..plan(nobody(), CLOSED, 1) },
        plan(nobody(), Arrivals::Closed { concurrency: 0 }, 1),
        plan(Server::new("http://no-such-host.invalid:1").unwrap(), CLOSED, 1),
    ];
    for plan in wrong {
        assert!(run(&plan, &AtomicBool::new(false), &mut |_| ()).is_err(), "{plan:?}");
    }
}
