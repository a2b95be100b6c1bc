import type { Config } from '../config';
import type { Jobs } from '../jobs';
import type { Limits } from '../limits';
import type { BlobStore, Guard, Keys } from '../relay';
import type { Store } from '../store/store';
import type { SignedLinks } from './links';
import type { OutputParts } from './outputs/parts';
import type { Access } from './requests';
import type { Space } from './space';
import type { UploadRows } from './uploads/rows';

/** What {@link createFiles} is made from. */
export interface FilesDependencies {
  readonly config: Config;
  readonly store: Pick<Store, 'db'>;
  readonly keys: Pick<Keys, 'authenticate'>;
  readonly limits: Pick<Limits, 'badKey' | 'key'>;
  readonly guard: Pick<Guard, 'fetch'>;
  readonly jobs: Pick<Jobs, 'get' | 'lease'>;
  readonly space: Pick<Space, 'require' | 'requireFor'>;
}

/** What the handlers of this folder work with. */
export interface FilesContext extends FilesDependencies {
  readonly blobs: BlobStore;
  readonly links: SignedLinks;
  readonly rows: UploadRows;
  readonly parts: OutputParts;
  readonly access: Access;
  /** Folder of parts and temporary files. */
  readonly temporary: string;
}
