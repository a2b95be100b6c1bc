ALTER TABLE "jobs" ADD COLUMN "needs" text[] GENERATED ALWAYS AS (array_remove(array[case when (input ->> 'loop')::boolean then 'loop' end, case when input -> 'last_image' is not null then 'last_image' end], null)) STORED NOT NULL;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "last_image" jsonb;--> statement-breakpoint
ALTER TABLE "jobs" DROP COLUMN "needs_loop";