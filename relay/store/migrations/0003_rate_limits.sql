-- The table of `rate-limiter-flexible`. Unlogged: a commit to it waits for no disk. A crash empties it.
CREATE UNLOGGED TABLE IF NOT EXISTS "rate_limits" ("key" varchar(255) PRIMARY KEY, "points" integer DEFAULT 0 NOT NULL, "expire" bigint);
