import path from 'node:path';
import type { Config } from '../config';
import type { FileRoute } from '../http/router';
import { type BlobStore, diskBlobs, partsFolder } from './blobs';
import { s3Blobs } from './blobs/s3';
import { getJobImage, getJobLora } from './inputs';
import { createIntake } from './intake';
import { getVideo, headOwnVideo, putOutput, putOwnVideo } from './outputs/video';
import type { FileHandler, FilesContext, FilesDependencies } from './requests';
import { createRetention, createSpace } from './retention';
import { shareHandlers } from './shares/handlers';
import { createShares } from './shares/rows';
import { getUpload, postUpload, putUpload, uploadRows } from './uploads';

export { createLinks } from './links';

/** The store that the settings name: a bucket with `S3_BUCKET`, else `{KINORA_DATA}/files`. */
export function openBlobs(config: Config): BlobStore {
  const { S3_BUCKET, S3_ACCESS_KEY_ID = '', S3_SECRET_ACCESS_KEY = '' } = config;
  if (S3_BUCKET === undefined) return diskBlobs(path.join(config.KINORA_DATA, 'files'));
  return s3Blobs({ ...config, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY });
}

/** Handlers of the operations whose body is a form, and of what is no operation of the API. */
const routes: Readonly<Record<FileRoute | 'uploadBinary' | 'uploadBinaryLegacy', FileHandler>> = {
  uploadBinary: postUpload,
  uploadBinaryLegacy: postUpload,
  'PUT /files/uploads/{id}': putUpload,
  'GET /files/uploads/{id}/{filename}': getUpload,
  'GET /files/video/{file}': getVideo,
  'GET /files/jobs/{id}/image': getJobImage('image'),
  'GET /files/jobs/{id}/last_image': getJobImage('last_image'),
  'GET /files/jobs/{id}/lora/{index}': getJobLora,
  'PUT /api/worker/jobs/{id}/output': putOutput,
  'PUT /api/admin/videos/{id}': putOwnVideo,
  'HEAD /api/admin/videos/{id}': headOwnVideo,
  ...shareHandlers,
};

export function createFiles(dependencies: FilesDependencies) {
  const { config, store } = dependencies;
  const context: FilesContext = {
    ...dependencies,
    blobs: openBlobs(config),
    temporary: partsFolder(config),
    rows: uploadRows(store),
    requireSpace: createSpace(config),
    shares: createShares(dependencies),
  };
  return {
    ...context,
    routes,
    intake: createIntake(context),
    ...createRetention(context),
  };
}

export type Files = ReturnType<typeof createFiles>;
