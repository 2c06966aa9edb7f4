//! `assay retention`: sets and shows retention periods of organizations.

use std::process::Output;

use anyhow::{Context, Result, ensure};

use crate::harness::{Stack, exits_with};

/// Sets, shows, resets and refuses periods.
pub async fn run(stack: &Stack) -> Result<()> {
    let acme = stack.other_organization("acme");
    stack.create_key(&acme, &[]).await?;
    expect_line(&show(stack, &[]).await?, "default", ["(forever)", "(forever)", "(30)"])?;
    expect_line(&show(stack, &[]).await?, &acme, ["(forever)", "(forever)", "(30)"])?;

    let set = ["set", "--organization", &acme, "--transcripts-days", "14", "--files-days", "forever"];
    let shown = success(retention(stack, &set).await?)?;
    expect_line(&shown, &acme, ["14", "(forever)", "forever"])?;
    success(retention(stack, &["set", "--organization", &acme, "--evaluations-days", "365"]).await?)?;
    let all = show(stack, &[]).await?;
    expect_line(&all, &acme, ["14", "365", "forever"])?;
    expect_line(&all, "default", ["(forever)", "(forever)", "(30)"])?;
    let one = show(stack, &["--organization", &acme]).await?;
    ensure!(one.lines().count() == 2, "more than one organization: {one}");

    let reset = ["set", "--organization", &acme, "--transcripts-days", "default"];
    let output = retention(stack, &reset).await?;
    exits_with(&output, 0, &[&format!("`{acme}` keeps evaluations for a shorter time")])?;
    expect_line(&show(stack, &[]).await?, &acme, ["(forever)", "365", "forever"])?;
    refusals(stack, &acme).await?;
    expect_line(&show(stack, &[]).await?, &acme, ["(forever)", "365", "forever"])
}

async fn refusals(stack: &Stack, acme: &str) -> Result<()> {
    let acme = ["set", "--organization", acme];
    let unknown = ["set", "--organization", "nobody", "--files-days", "1"];
    let cases: [(Vec<&str>, i32, &str); 6] = [
        (unknown.to_vec(), 1, "there is no organization `nobody`"),
        (vec!["show", "--organization", "nobody"], 1, "there is no organization `nobody`"),
        ([&acme[..], &["--transcripts-days", "0"]].concat(), 1, "from 1 to 36500"),
        ([&acme[..], &["--evaluations-days", "soon"]].concat(), 1, "--evaluations-days"),
        (acme.to_vec(), 2, "--transcripts-days"),
        (vec!["set", "--files-days", "1"], 2, "--organization"),
    ];
    for (arguments, code, message) in cases {
        let output = retention(stack, &arguments).await?;
        exits_with(&output, code, &[message]).with_context(|| format!("{arguments:?}"))?;
    }
    Ok(())
}

async fn retention(stack: &Stack, arguments: &[&str]) -> Result<Output> {
    stack.operate("retention", arguments).await
}

async fn show(stack: &Stack, arguments: &[&str]) -> Result<String> {
    success(retention(stack, &[&["show"], arguments].concat()).await?)
}

fn success(output: Output) -> Result<String> {
    ensure!(output.status.success(), "assay retention: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Checks the periods of transcripts, evaluations and files; one in parentheses is the default.
fn expect_line(table: &str, organization: &str, periods: [&str; 3]) -> Result<()> {
    let line = table.lines().find(|line| line.split_whitespace().last() == Some(organization));
    let line = line.with_context(|| format!("{organization} is not shown: {table}"))?;
    let cells: Vec<&str> = line.split_whitespace().take(3).collect();
    ensure!(cells == periods, "{organization}: {cells:?} instead of {periods:?}");
    Ok(())
}
