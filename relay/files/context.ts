import type { Logger } from 'pino';
import type { Keys } from '../access/keys';
import type { Limits } from '../access/limits';
import type { Config } from '../config';
import type { Guard } from '../guard/guard';
import type { Jobs } from '../jobs/index';
import type { Store } from '../store/store';
import type { Storage } from './blobs';
import type { Links } from './links';
import type { Space } from './space';
import type { UploadRows } from './uploads/rows';

/** What {@link createFiles} is made from. */
export interface FilesDependencies {
  readonly config: Config;
  readonly links: Links;
  readonly store: Pick<Store, 'db' | 'listen'>;
  readonly keys: Pick<Keys, 'authenticate' | 'authenticateAdmin'>;
  readonly limits: Pick<Limits, 'key'>;
  readonly guard: Guard;
  readonly jobs: Jobs;
  readonly space: Space;
  readonly log: Logger;
}

/** What the handlers of this folder work with. */
export interface FilesContext extends FilesDependencies, Storage {
  readonly rows: UploadRows;
}
