import type { Config } from '../config';
import type { Files, Guard, Jobs, Keys, Limits, NodeHandler } from '../relay';
import type { Store } from '../store/store';
import { openBlobs, partsFolder } from './blobs';
import { createAccess } from './http';
import { getJobImage } from './inputs/image';
import { getJobLora } from './inputs/lora';
import { createLinks, loadSecret, type SignedLinks } from './links';
import { outputParts } from './outputs/parts';
import { headOutput, putOutput, takeOutput } from './outputs/receive';
import { getVideo } from './outputs/serve';
import { createRetention } from './retention';
import type { Space } from './space';
import { getUpload } from './uploads/download';
import { postUpload } from './uploads/multipart';
import { putUpload } from './uploads/receive';
import { uploadRows } from './uploads/rows';
import { createTicket } from './uploads/ticket';

export { invalidField } from './http';
export { createLinks, isOwnUpload, loadSecret, type SignedLinks } from './links';
export { inputKey } from './retention';
export { createSpace, type Space } from './space';
export { checkImage, imageType, sentenceOf } from './uploads/kinds';
export { insertStored, newUpload, type UploadRows, uploadRows } from './uploads/rows';

/** Files, with links that can be read again. */
export interface FilesRoom extends Files {
  readonly links: SignedLinks;
}

/** What {@link createFiles} works with. */
export interface FilesParts {
  readonly config: Config;
  readonly store: Pick<Store, 'db'>;
  readonly keys: Pick<Keys, 'authenticate'>;
  readonly limits: Pick<Limits, 'badKey' | 'key'>;
  readonly guard: Pick<Guard, 'fetch'>;
  readonly jobs: Pick<Jobs, 'get' | 'lease'>;
  readonly space: Pick<Space, 'require' | 'requireFor'>;
}

/**
 * Opens the room of large bytes.
 *
 * @throws ApiError `STORAGE_DOWN` when the database does not answer
 */
export async function createFiles(parts: FilesParts): Promise<FilesRoom> {
  const { config, store } = parts;
  const links = createLinks({ config, secret: await loadSecret(store) });
  const blobs = await openBlobs(config);
  const temporary = partsFolder(config);
  const rows = uploadRows(store);
  const room = {
    ...parts,
    links,
    blobs,
    temporary,
    rows,
    parts: outputParts(temporary),
    access: createAccess(parts),
  };
  const video = getVideo(room);
  const upload = getUpload(room);
  const image = getJobImage(room);
  const lora = getJobLora(room);
  const binary = postUpload(room, config, room.access);
  const routes: Record<string, NodeHandler> = {
    'POST /api/v3/media/upload/binary': binary,
    'POST /api/v2/media/upload/binary': binary,
    'PUT /files/uploads/{id}': putUpload(room),
    'GET /files/uploads/{id}/{filename}': upload,
    'HEAD /files/uploads/{id}/{filename}': upload,
    'GET /files/video/{file}': video,
    'HEAD /files/video/{file}': video,
    'GET /files/jobs/{id}/image': image,
    'HEAD /files/jobs/{id}/image': image,
    'GET /files/jobs/{id}/lora/{index}': lora,
    'HEAD /files/jobs/{id}/lora/{index}': lora,
    'PUT /api/worker/jobs/{id}/output': putOutput(room),
    'HEAD /api/worker/jobs/{id}/output': headOutput(room),
  };
  return {
    blobs,
    links,
    routes,
    ticket: createTicket(config, rows, parts.space),
    takeOutput: takeOutput(room),
    ...createRetention(room),
  };
}
