//! Nsight Systems: SQLite exports, and the tables `nsys stats` prints.

mod database;
pub mod sqlite;
pub mod stats;
