DROP INDEX "jobs_waiting";--> statement-breakpoint
DROP INDEX "jobs_waiting_shared";--> statement-breakpoint
CREATE INDEX "jobs_waiting" ON "jobs" USING btree ("owner","created_at") WHERE status = 'created' and ready;--> statement-breakpoint
CREATE INDEX "jobs_waiting_shared" ON "jobs" USING btree ("created_at") WHERE status = 'created' and ready and shared;--> statement-breakpoint
ALTER TABLE "jobs" DROP COLUMN "priority";--> statement-breakpoint
ALTER TABLE "jobs" DROP COLUMN "started_at";--> statement-breakpoint
ALTER TABLE "workers" DROP COLUMN "jobs_done";