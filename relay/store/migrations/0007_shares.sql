CREATE TABLE "shares" (
	"id" text PRIMARY KEY NOT NULL,
	"job_id" text,
	"with_prompt" boolean NOT NULL,
	"with_settings" boolean NOT NULL,
	"with_image" boolean NOT NULL,
	"allow_index" boolean NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"revoked_at" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "shares" ADD CONSTRAINT "shares_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "public"."jobs"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "shares_current" ON "shares" USING btree ("job_id") WHERE revoked_at is null;--> statement-breakpoint
CREATE INDEX "shares_of_job" ON "shares" USING btree ("job_id");