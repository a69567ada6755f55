mod audit;
mod jobs;
mod licenses;
mod plans;
mod sessions;
mod subscriptions;
mod usage;
