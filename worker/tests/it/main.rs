//! The worker against real stores: SQLite in a file, and a Redis per test.

#[cfg(test)]
mod deaf;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod ready;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod supervised;
#[cfg(test)]
mod world;
