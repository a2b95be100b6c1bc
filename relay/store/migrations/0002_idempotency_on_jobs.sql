ALTER TABLE "jobs" ADD COLUMN "idempotency_key" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "idempotency_hash" text;--> statement-breakpoint
UPDATE "jobs" SET "idempotency_key" = "idempotency"."idempotency_key", "idempotency_hash" = "idempotency"."body_hash" FROM "idempotency" WHERE "idempotency"."job_id" = "jobs"."id" AND "idempotency"."key_id" = "jobs"."key_id";--> statement-breakpoint
DROP TABLE "idempotency" CASCADE;--> statement-breakpoint
CREATE UNIQUE INDEX "jobs_idempotency" ON "jobs" USING btree ("key_id","idempotency_key") WHERE idempotency_key is not null;
