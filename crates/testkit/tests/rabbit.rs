//! Guarantees of a private RabbitMQ broker.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use assay_testkit::{PrivateRabbit, RabbitOptions, wait::wait_for};

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn port_of(broker: &PrivateRabbit) -> Result<u16> {
    url::Url::parse(&broker.amqp_url())?.port().context("the URL names no port")
}

#[test]
fn pid_is_that_of_the_erlang_vm() -> Result<()> {
    let broker = PrivateRabbit::start(&RabbitOptions::for_tests())?;
    let program = fs::read_link(format!("/proc/{}/exe", broker.pid()))?;
    ensure!(program.file_name().is_some_and(|name| name == "beam.smp"), "{}", program.display());
    Ok(())
}

#[test]
fn broker_speaks_amqp_on_loopback() -> Result<()> {
    let broker = PrivateRabbit::start(&RabbitOptions::for_tests())?;
    let mut stream = TcpStream::connect(("127.0.0.1", port_of(&broker)?))?;
    stream.write_all(b"AMQP\x00\x00\x09\x01")?;
    let mut header = [0; 11];
    stream.read_exact(&mut header)?;
    ensure!(header[0] == 1 && header[7..] == [0, 10, 0, 10], "expected connection.start, found {header:?}");
    Ok(())
}

#[test]
fn two_brokers_run_side_by_side() -> Result<()> {
    let first = PrivateRabbit::start(&RabbitOptions::for_tests())?;
    let second = PrivateRabbit::start(&RabbitOptions::for_tests())?;
    ensure!(first.pid() != second.pid() && port_of(&first)? != port_of(&second)?);
    ensure!(exists(first.pid()) && exists(second.pid()));
    Ok(())
}

#[test]
fn stopped_or_dropped_broker_leaves_no_process() -> Result<()> {
    let ends: [fn(PrivateRabbit); 2] = [PrivateRabbit::stop, drop];
    for end in ends {
        let broker = PrivateRabbit::start(&RabbitOptions::for_tests())?;
        let (pid, epmd, port) = (broker.pid(), broker.epmd_pid(), port_of(&broker)?);
        ensure!(exists(pid) && exists(epmd));
        end(broker);
        ensure!(!exists(pid) && !exists(epmd));
        wait_for("the port to be closed", Duration::from_secs(10), || {
            Ok(TcpStream::connect(("127.0.0.1", port)).is_err().then_some(()))
        })?;
    }
    Ok(())
}

#[test]
fn persistent_broker_keeps_its_name_and_password() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = RabbitOptions::durable_in(folder.path().join("rabbitmq"));
    let first = PrivateRabbit::start(&options)?;
    let password = url::Url::parse(&first.amqp_url())?.password().map(str::to_owned);
    first.stop();
    let second = PrivateRabbit::start(&options)?;
    ensure!(url::Url::parse(&second.amqp_url())?.password().map(str::to_owned) == password);
    second.stop();
    Ok(())
}
