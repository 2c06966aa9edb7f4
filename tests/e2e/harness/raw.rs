//! Malformed or slow requests over a plain TCP connection.

use std::time::Duration;

use anyhow::{Context, Result};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::WAIT_LIMIT;
use super::reply::Reply;
use super::stack::Stack;

/// A connection to the gateway.
pub struct RawConnection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    received: Vec<u8>,
}

impl RawConnection {
    /// Connects to the address in `base_url`.
    pub async fn open(base_url: &str) -> Result<Self> {
        let address = base_url.trim_start_matches("http://");
        let (reader, writer) = TcpStream::connect(address).await?.into_split();
        Ok(Self { reader, writer, received: Vec::new() })
    }

    /// Connects, and sends the head of an import with the key of the stack; `headers` describe its body.
    pub async fn begin_import(stack: &Stack, headers: &str) -> Result<Self> {
        let key = stack.key();
        Self::begin_with_headers(stack, &format!("Authorization: Bearer {key}\r\n{headers}")).await
    }

    /// Connects, and sends the head of an import without a key, unless `headers` have one.
    pub async fn begin_with_headers(stack: &Stack, headers: &str) -> Result<Self> {
        let mut connection = Self::open(stack.base_url()).await?;
        let head = format!(
            "POST /v1/assess HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n\r\n"
        );
        connection.send(head.as_bytes()).await?;
        Ok(connection)
    }

    /// Begins an import with the key and `length` bytes, of which none is sent, and waits until the gateway has read the head.
    pub async fn hold_import(stack: &Stack, length: usize) -> Result<Self> {
        let headers = format!("Content-Length: {length}\r\nExpect: 100-continue");
        let mut connection = Self::begin_import(stack, &headers).await?;
        connection.reply().await?.expect_status(100)?;
        Ok(connection)
    }

    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.writer.write_all(bytes).await?)
    }

    /// Sends `chunk` repeatedly, at most `at_most` bytes in all, until an answer begins; returns the number of bytes sent. An
    /// error when the connection breaks first.
    pub async fn send_until_answered(&mut self, chunk: &[u8], at_most: usize) -> Result<usize> {
        let mut sent = 0;
        // A chunk may be written partially.
        while sent < at_most {
            tokio::select! {
                biased;
                read = self.reader.read_buf(&mut self.received) => {
                    read.context("the connection broke before an answer")?;
                    return Ok(sent);
                }
                written = self.writer.write(&chunk[sent % chunk.len()..]) => sent += written.context("the connection broke")?,
            }
        }
        Ok(sent)
    }

    pub async fn reply(&mut self) -> Result<Reply> {
        tokio::time::timeout(WAIT_LIMIT, self.read_reply()).await.context("no answer in time")?
    }

    /// Whether the server closes the connection within this time.
    pub async fn is_closed_within(&mut self, limit: Duration) -> bool {
        let mut rest = Vec::new();
        tokio::time::timeout(limit, self.reader.read_to_end(&mut rest)).await.is_ok()
    }

    async fn read_reply(&mut self) -> Result<Reply> {
        let end = loop {
            if let Some(end) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8(self.received.drain(..end + 4).collect())?;
        let mut lines = head.lines();
        let status =
            lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?.parse()?;
        let mut headers = HeaderMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            headers.insert(name.parse::<HeaderName>()?, value.parse::<HeaderValue>()?);
        }
        let length =
            headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
        while self.received.len() < length {
            self.read_more().await?;
        }
        let body = self.received.drain(..length).collect();
        Ok(Reply { request_line: "raw request".to_owned(), status, headers, body })
    }

    async fn read_more(&mut self) -> Result<()> {
        let read = self.reader.read_buf(&mut self.received).await?;
        let text = String::from_utf8_lossy(&self.received);
        anyhow::ensure!(read > 0, "the connection was closed in the middle of an answer: {text:?}");
        Ok(())
    }
}
