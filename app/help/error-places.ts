import type { ErrorCode } from '../../lib/contract';
import type help from '../texts/en/help.json';

type Catalogue = Omit<typeof help, 'contents'>;

/** Ids of the parts of a section. */
type PartIds<Section extends keyof Catalogue> =
  `${Section}-${Exclude<keyof Catalogue[Section], 'title'> & string}`;

/** A part of a section of the help: its id on the page, `section-part`. */
export type HelpPlace = { [Section in keyof Catalogue]: PartIds<Section> }[keyof Catalogue];

/**
 * Where the help explains each error. The page puts the code there as an anchor, `/help#CODE`, so that a link to it
 * needs nothing but the code.
 */
export const errorPlaces: Readonly<Record<ErrorCode, HelpPlace>> = {
  IMAGE_MISSING: 'first-image',
  IMAGE_EMPTY: 'problems-image',
  IMAGE_TOO_LARGE: 'problems-image',
  IMAGE_TOO_MANY_PIXELS: 'problems-image',
  IMAGE_UNREADABLE: 'problems-image',
  IMAGE_HEIC: 'problems-image',
  IMAGE_TRUNCATED: 'problems-image',
  IMAGE_UNREACHABLE: 'problems-image',
  SHARE_UNREADABLE: 'sharing-end',
  SHARED_FILES_LOST: 'problems-storageFull',
  PROMPT_EMPTY: 'first-prompt',
  PROMPT_REFUSED: 'safety-off',
  PARAMETER_INVALID: 'problems-values',
  REQUEST_INVALID: 'problems-values',
  LOOP_WITH_LAST_IMAGE: 'settings-lastImage',
  LAST_IMAGE_BEYOND_END: 'settings-lastImage',
  MODEL_UNKNOWN: 'problems-model',
  MODEL_MANIFEST_INVALID: 'problems-otherModel',
  MODEL_FILE_MISSING: 'problems-model',
  MODEL_FILE_INVALID: 'problems-model',
  MODEL_FILE_TRUNCATED: 'problems-model',
  MODEL_CONFIG_INVALID: 'problems-otherModel',
  MODEL_NOT_INSTALLED: 'problems-model',
  MODEL_WRONG_KIND: 'problems-otherModel',
  MODEL_BUSY: 'problems-model',
  LANGUAGE_MODEL_FAILED: 'problems-improve',
  TENSOR_MISSING: 'problems-otherModel',
  TENSOR_SHAPE: 'problems-otherModel',
  TENSOR_EXTRA: 'problems-otherModel',
  TENSOR_DTYPE: 'problems-otherModel',
  ADDRESS_INVALID: 'problems-download',
  HUB_UNREACHABLE: 'problems-download',
  LINK_UNREACHABLE: 'problems-download',
  HUB_NOT_FOUND: 'problems-download',
  HUB_DENIED: 'problems-download',
  HUB_BUSY: 'problems-download',
  HUB_ANSWER_INVALID: 'problems-download',
  DOWNLOAD_CORRUPT: 'problems-download',
  TERMS_NOT_ACCEPTED: 'safety-terms',
  LORA_MISSING: 'lora-add',
  LORA_INVALID: 'problems-lora',
  LORA_WRONG_BASE: 'problems-lora',
  WEBGPU_MISSING: 'problems-webgpu',
  ADAPTER_MISSING: 'problems-webgpu',
  ADAPTER_SOFTWARE: 'problems-software',
  GPU_UNRELIABLE: 'problems-wrong',
  KERNELS_UNAVAILABLE: 'problems-wrong',
  DEVICE_LOST: 'problems-lost',
  OUT_OF_MEMORY: 'problems-memory',
  LATENTS_NOT_FINITE: 'problems-numbers',
  CHECK_FAILED: 'problems-check',
  ENCODER_FAILED: 'problems-encoder',
  STORAGE_FULL: 'problems-storageFull',
  STORAGE_BLOCKED: 'problems-storageBlocked',
  STORAGE_MISSING: 'problems-storageBlocked',
  CANCELLED: 'run-pause',
  INTERRUPTED: 'problems-interrupted',
  PAUSED: 'run-pause',
  CHECKPOINT_INVALID: 'problems-interrupted',
  CHECKPOINT_MISMATCH: 'problems-interrupted',
  BUSY: 'run-queue',
  SCRIPT_REFUSED: 'problems-server',
  SERVER_UNREACHABLE: 'problems-server',
  VIDEO_UNREADABLE: 'problems-files',
  AUDIO_UNREADABLE: 'run-sound',
  FILE_UNREADABLE: 'problems-files',
  FILE_UNWRITABLE: 'problems-files',
  NOTIFICATIONS_DENIED: 'problems-notifications',
  BROWSER_MISSING: 'problems-browser',
  INTERNAL: 'problems-report',
};

/** The errors that a place of the help explains. */
export function errorsAt(place: string): readonly string[] {
  return Object.entries(errorPlaces).flatMap(([code, at]) => (at === place ? [code] : []));
}
