//! CPU time by process, descendants included.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The kernel counts in hundredths of a second, on every platform that we run on.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds by name.
#[derive(Clone, Debug, Default)]
pub struct Usage(pub BTreeMap<String, f64>);

impl Usage {
    /// Usage of these processes with their descendants, and of this one as `load generator`.
    pub fn now(roots: &[(String, u32)]) -> Result<Self> {
        let processes = processes()?;
        let mut usage = BTreeMap::new();
        for (name, root) in roots {
            let ticks: u64 = processes
                .iter()
                .filter(|(pid, _)| descends(**pid, *root, &processes))
                .map(|(_, process)| process.own_ticks + process.children_ticks)
                .sum();
            *usage.entry(name.clone()).or_default() += ticks as f64 / TICKS_PER_SECOND;
        }
        let own = processes.get(&std::process::id()).context("we have no process")?;
        let own = own.own_ticks + own.children_ticks;
        usage.insert("load generator".to_owned(), own as f64 / TICKS_PER_SECOND);
        Ok(Self(usage))
    }

    /// Usage since `before`, in microseconds per item.
    pub fn micros_each(&self, before: &Self, count: u64) -> BTreeMap<String, f64> {
        let each = |(name, seconds): (&String, &f64)| {
            let since = seconds - before.0.get(name).unwrap_or(&0.0);
            (name.clone(), 1e6 * since / count.max(1) as f64)
        };
        self.0.iter().map(each).collect()
    }
}

/// CPU seconds that the live threads of this name have used, in a process and its descendants.
pub fn seconds_of_threads(root: u32, name: &str) -> Result<f64> {
    let processes = processes()?;
    let mut ticks = 0;
    for pid in processes.keys().filter(|pid| descends(**pid, root, &processes)) {
        // The process may have ended meanwhile, and so may a thread.
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        let stats = threads.flatten().filter_map(|thread| Stat::read(&thread.path().join("stat")));
        ticks += stats.filter(|stat| stat.name == name).map(|stat| stat.own_ticks).sum::<u64>();
    }
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

/// Formats the times by name, with their sum.
pub fn listed(micros: &BTreeMap<String, f64>) -> String {
    let each: String = micros.iter().map(|(name, micros)| format!("{name} {micros:.0}, ")).collect();
    format!("{each}together {:.0}", micros.values().sum::<f64>())
}

/// What the kernel tells of a process or thread (proc(5), `stat`).
struct Stat {
    name: String,
    parent: u32,
    /// User and system time.
    own_ticks: u64,
    /// The same of ended children.
    children_ticks: u64,
}

impl Stat {
    /// `None` if the process or thread has ended meanwhile.
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        // The name in parentheses may hold anything. Behind it field 0 is the state, and field 1 the parent.
        let (begin, fields) = text.rsplit_once(')')?;
        let name = begin.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let parent = u32::try_from(field(1)).unwrap_or(0);
        Some(Self { name, parent, own_ticks: field(11) + field(12), children_ticks: field(13) + field(14) })
    }
}

fn processes() -> Result<HashMap<u32, Stat>> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        processes.extend(Stat::read(&entry.path().join("stat")).map(|stat| (pid, stat)));
    }
    Ok(processes)
}

fn descends(mut pid: u32, root: u32, processes: &HashMap<u32, Stat>) -> bool {
    while pid > 1 {
        if pid == root {
            return true;
        }
        pid = processes.get(&pid).map_or(0, |process| process.parent);
    }
    false
}

/// Peak resident memory of a process, in MiB.
pub fn peak_memory_mib(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: f64 = line.split_whitespace().next().context("no figure")?.parse()?;
    Ok(kib / 1024.0)
}

/// Sets the peak to the memory in use (proc(5), `clear_refs`).
pub fn reset_peak_memory(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}
