ALTER TABLE "jobs" ADD COLUMN "sampling_ms" integer;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "decode_ms" integer;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "applied" jsonb;