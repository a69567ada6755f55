mod audit;
mod licenses;
mod sessions;
