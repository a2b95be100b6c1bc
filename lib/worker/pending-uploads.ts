import Dexie, { type EntityTable } from 'dexie';
import { uncheckedSafety } from '../contract';
import type { Completion } from '../contract/v3';
import { listRuns, removeRun } from '../predictions/run-files';
import { isServed, listVideos, removeVideo } from '../predictions/videos';
import type { CurrentJob } from './connection';

/** A job that comes back to this browser does so sooner, in milliseconds. */
const savedRunAgeMs = 24 * 60 * 60 * 1000;

/** The record of a video that no checker has seen. */
export const notChecked = uncheckedSafety('unverified', 'missing');

/** A video that is made and not yet delivered: all that another attempt to upload it needs. */
export interface FinishedJob {
  readonly id: string;
  readonly job: CurrentJob;
  readonly heartbeatMs: number;
  readonly videoFile: string;
  /** With the lease's token. */
  readonly completion: Completion;
}

/**
 * What is made and not yet delivered, in a database of its own: prompts and images of others never
 * enter the studio's. A reload, or a cut after hours of work, uploads again from here.
 */
export class PendingUploads {
  readonly database: Dexie & { finished: EntityTable<FinishedJob, 'id'> };

  /** @param name another name keeps tests apart */
  constructor(name = 'kinora-serving') {
    const database = new Dexie(name);
    database.version(3).stores({ finished: 'id' });
    this.database = database as PendingUploads['database'];
  }

  keep(finished: FinishedJob): Promise<unknown> {
    return this.database.finished.put(finished);
  }

  all(): Promise<FinishedJob[]> {
    return this.database.finished.toArray();
  }

  /** Forgets a job and its video. */
  async drop(id: string, videoFile: string): Promise<void> {
    await this.database.finished.delete(id);
    await removeVideo(videoFile);
  }

  /**
   * Removes videos of jobs that were never finished, and what was saved of jobs a day ago. Only for the one
   * tab that serves in this browser.
   *
   * @param now milliseconds since the epoch
   */
  async sweep(now = Date.now()): Promise<void> {
    const kept = new Set((await this.all()).map(({ videoFile }) => videoFile));
    for (const file of await listVideos()) {
      const name = file.replace(/\.part$/, '');
      if (isServed(file) && !kept.has(name)) await removeVideo(name);
    }
    for (const { id, lastModified } of await listRuns()) {
      if (isServed(id) && now - lastModified > savedRunAgeMs) await removeRun(id);
    }
  }
}
