DROP INDEX "deliveries_job";--> statement-breakpoint
DROP INDEX "jobs_of_owner";--> statement-breakpoint
ALTER TABLE "deliveries" ADD COLUMN "event" text DEFAULT 'completed' NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "webhook_events" jsonb GENERATED ALWAYS AS (input -> 'webhook_events') STORED;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "sampling_ms" integer;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "decode_ms" integer;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "applied" jsonb;--> statement-breakpoint
CREATE UNIQUE INDEX "deliveries_event" ON "deliveries" USING btree ("job_id","event");--> statement-breakpoint
CREATE INDEX "jobs_of_owner" ON "jobs" USING btree ("owner","created_at" DESC NULLS FIRST,"id" DESC NULLS FIRST);