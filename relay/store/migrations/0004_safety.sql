ALTER TABLE "jobs" ALTER COLUMN "safety" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "jobs" ALTER COLUMN "safety" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "needs_checker" boolean GENERATED ALWAYS AS (coalesce((input ->> 'enable_safety_checker')::boolean, false)) STORED NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "needs_optimizer" boolean GENERATED ALWAYS AS (coalesce((input ->> 'enable_prompt_optimizer')::boolean, false)) STORED NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "safety_record" jsonb;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "prompt_optimization" jsonb;--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "terms_version" text;--> statement-breakpoint
-- No earlier version had a checker.
UPDATE "jobs" SET "safety" = CASE WHEN "status" <> 'completed' THEN NULL WHEN "needs_checker" THEN 'unverified' ELSE 'off' END;
