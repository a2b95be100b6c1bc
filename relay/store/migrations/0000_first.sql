CREATE TABLE "deliveries" (
	"id" text PRIMARY KEY NOT NULL,
	"job_id" text NOT NULL,
	"event" text DEFAULT 'completed' NOT NULL,
	"owner" text NOT NULL,
	"url" text NOT NULL,
	"body" text NOT NULL,
	"status" text DEFAULT 'due' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"attempts_before" integer DEFAULT 0 NOT NULL,
	"next_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"last_status" integer,
	"last_answer" text DEFAULT '' NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"key_id" text NOT NULL,
	"shared" boolean DEFAULT false NOT NULL,
	"model" text NOT NULL,
	"input" jsonb NOT NULL,
	"seed" bigint NOT NULL,
	"webhook_url" text,
	"webhook_events" jsonb GENERATED ALWAYS AS (input -> 'webhook_events') STORED,
	"idempotency_key" text,
	"idempotency_hash" text,
	"status" text DEFAULT 'created' NOT NULL,
	"ready" boolean DEFAULT false NOT NULL,
	"priority" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"size" text NOT NULL,
	"duration" integer NOT NULL,
	"needs_lora" boolean DEFAULT false NOT NULL,
	"needs_checker" boolean GENERATED ALWAYS AS (coalesce((input ->> 'enable_safety_checker')::boolean, false)) STORED NOT NULL,
	"needs_optimizer" boolean GENERATED ALWAYS AS (coalesce((input ->> 'enable_prompt_optimizer')::boolean, false)) STORED NOT NULL,
	"models" text[] NOT NULL,
	"precisions" text[] NOT NULL,
	"image" jsonb,
	"loras" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"intake_until" timestamp (3) with time zone,
	"intake_attempts" integer DEFAULT 0 NOT NULL,
	"intake_failures" integer DEFAULT 0 NOT NULL,
	"intake_error" text DEFAULT '' NOT NULL,
	"intake_retry_at" timestamp (3) with time zone,
	"attempt" integer DEFAULT 0 NOT NULL,
	"releases" integer DEFAULT 0 NOT NULL,
	"failed_at" timestamp (3) with time zone,
	"failed_worker" text,
	"lease_token" text,
	"lease_until" timestamp (3) with time zone,
	"deadline" timestamp (3) with time zone,
	"worker_id" text,
	"worker_token" text,
	"started_at" timestamp (3) with time zone,
	"progress" jsonb,
	"finished_at" timestamp (3) with time zone,
	"error" text DEFAULT '' NOT NULL,
	"code" integer,
	"inference_ms" integer DEFAULT 0 NOT NULL,
	"sampling_ms" integer,
	"decode_ms" integer,
	"applied" jsonb,
	"output_key" text,
	"output_bytes" bigint,
	"output_sha256" text,
	"output_nonce" text,
	"output_expires_at" timestamp (3) with time zone,
	"ran_model" text,
	"ran_precision" text,
	"safety" text,
	"safety_record" jsonb,
	"prompt_optimization" jsonb
);
--> statement-breakpoint
CREATE TABLE "keys" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"owner" text NOT NULL,
	"name" text NOT NULL,
	"hash" text NOT NULL,
	"last4" text NOT NULL,
	"scopes" text[] NOT NULL,
	"shared" boolean DEFAULT false NOT NULL,
	"terms_version" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"revoked_at" timestamp (3) with time zone,
	"last_used_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "owners" (
	"name" text PRIMARY KEY NOT NULL,
	"webhook_secret" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "previews" (
	"job_id" text PRIMARY KEY NOT NULL,
	"step" integer NOT NULL,
	"image" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "settings" (
	"name" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
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
CREATE TABLE "uploads" (
	"id" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"key_id" text NOT NULL,
	"filename" text NOT NULL,
	"content_type" text NOT NULL,
	"bytes" bigint NOT NULL,
	"sha256" text,
	"blob_key" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "workers" (
	"id" text PRIMARY KEY NOT NULL,
	"token_id" text NOT NULL,
	"owner" text NOT NULL,
	"declaration" jsonb NOT NULL,
	"state" text NOT NULL,
	"jobs_done" integer DEFAULT 0 NOT NULL,
	"connected_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"seen_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "keys" ADD CONSTRAINT "keys_owner_owners_name_fk" FOREIGN KEY ("owner") REFERENCES "public"."owners"("name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "previews" ADD CONSTRAINT "previews_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "public"."jobs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "shares" ADD CONSTRAINT "shares_job_id_jobs_id_fk" FOREIGN KEY ("job_id") REFERENCES "public"."jobs"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "deliveries_event" ON "deliveries" USING btree ("job_id","event");--> statement-breakpoint
CREATE INDEX "deliveries_due" ON "deliveries" USING btree ("next_at") WHERE status = 'due';--> statement-breakpoint
CREATE INDEX "deliveries_finished" ON "deliveries" USING btree ("finished_at") WHERE finished_at is not null;--> statement-breakpoint
CREATE INDEX "deliveries_of_owner" ON "deliveries" USING btree ("owner","created_at" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "jobs_waiting" ON "jobs" USING btree ("owner","priority" DESC NULLS FIRST,"created_at") WHERE status = 'created' and ready;--> statement-breakpoint
CREATE INDEX "jobs_waiting_shared" ON "jobs" USING btree ("priority" DESC NULLS FIRST,"created_at") WHERE status = 'created' and ready and shared;--> statement-breakpoint
CREATE INDEX "jobs_intake" ON "jobs" USING btree ("owner","created_at") WHERE status = 'created' and not ready;--> statement-breakpoint
CREATE INDEX "jobs_leases" ON "jobs" USING btree ("lease_until") WHERE status = 'processing';--> statement-breakpoint
CREATE INDEX "jobs_deadlines" ON "jobs" USING btree ("deadline") WHERE status = 'processing';--> statement-breakpoint
CREATE INDEX "jobs_of_owner" ON "jobs" USING btree ("owner","created_at" DESC NULLS FIRST,"id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "jobs_unfinished" ON "jobs" USING btree ("key_id") WHERE status in ('created', 'processing');--> statement-breakpoint
CREATE UNIQUE INDEX "jobs_idempotency" ON "jobs" USING btree ("key_id","idempotency_key") WHERE idempotency_key is not null;--> statement-breakpoint
CREATE INDEX "jobs_outputs" ON "jobs" USING btree ("output_expires_at") WHERE output_key is not null;--> statement-breakpoint
CREATE INDEX "jobs_inputs" ON "jobs" USING btree ("finished_at") WHERE image is not null and finished_at is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "shares_current" ON "shares" USING btree ("job_id") WHERE revoked_at is null;--> statement-breakpoint
CREATE INDEX "shares_of_job" ON "shares" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "uploads_of_owner" ON "uploads" USING btree ("owner","filename","created_at" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "uploads_expiry" ON "uploads" USING btree ("expires_at");
