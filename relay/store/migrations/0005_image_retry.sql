ALTER TABLE "jobs" ADD COLUMN "intake_failures" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "intake_error" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "intake_retry_at" timestamp (3) with time zone;