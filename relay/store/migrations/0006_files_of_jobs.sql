DROP INDEX "jobs_outputs";--> statement-breakpoint
DROP INDEX "jobs_inputs";--> statement-breakpoint
ALTER TABLE "uploads" ADD COLUMN "job_id" text;--> statement-breakpoint
CREATE INDEX "uploads_of_job" ON "uploads" USING btree ("job_id") WHERE job_id is not null;--> statement-breakpoint
UPDATE "uploads" SET "job_id" = "jobs"."id" FROM "jobs"
  WHERE "uploads"."blob_key" LIKE 'inputs/%' AND "uploads"."blob_key" IN ("jobs"."image" ->> 'key', "jobs"."last_image" ->> 'key');--> statement-breakpoint
INSERT INTO "uploads" ("id", "owner", "key_id", "job_id", "filename", "content_type", "bytes", "blob_key", "expires_at")
  SELECT md5(file ->> 'key'), "owner", "key_id", "jobs"."id", 'image', file ->> 'type', (file ->> 'bytes')::bigint, file ->> 'key', coalesce("finished_at", now()) + interval '7 days'
  FROM "jobs", LATERAL (VALUES ("image"), ("last_image")) AS "files"(file)
  WHERE file ->> 'key' LIKE 'inputs/%' AND NOT EXISTS (SELECT 1 FROM "uploads" WHERE "blob_key" = file ->> 'key');--> statement-breakpoint
INSERT INTO "uploads" ("id", "owner", "key_id", "job_id", "filename", "content_type", "bytes", "sha256", "blob_key", "expires_at")
  SELECT md5("output_key"), "owner", "key_id", "id", "id" || '.mp4', 'video/mp4', coalesce("output_bytes", 0), "output_sha256", "output_key", "output_expires_at"
  FROM "jobs" WHERE "output_key" IS NOT NULL AND "output_expires_at" IS NOT NULL;--> statement-breakpoint
INSERT INTO "uploads" ("id", "owner", "key_id", "job_id", "filename", "content_type", "bytes", "blob_key", "expires_at")
  SELECT md5('poster ' || "id"), "owner", "key_id", "id", 'poster.jpg', 'image/jpeg', 0, 'posters/' || left("id", 2) || '/' || "id", "output_expires_at"
  FROM "jobs" WHERE "attempt" = 0 AND "output_key" IS NOT NULL AND "output_expires_at" IS NOT NULL;
