mod audit;
mod jobs;
mod licenses;
mod sessions;
