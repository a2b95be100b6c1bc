import { afterEach, describe, expect, it, vi } from 'vitest';
import { testCaller, testWorker } from '../testing/jobs';
import { engines, withStore } from '../testing/store';
import { createWorkers } from './workers';

const ada = testCaller('ada');
const bob = testCaller('bob');

describe.each(engines)('the list of workers', (engine) => {
  withStore(engine, (fixture) => {
    afterEach(() => vi.restoreAllMocks());

    it('is written in one statement, also of workers of several owners that name one id', async () => {
      const { db } = fixture().store;
      const workers = createWorkers({ db });
      const [one, two] = [testWorker(), testWorker()];
      workers.seen(ada, one, 'idle');
      workers.seen(bob, { ...one, name: 'not his' }, 'busy');
      workers.seen(ada, two, 'paused');
      workers.seen(ada, two, 'busy');
      const statements = vi.spyOn(db, 'execute');
      await Promise.all([workers.flush(), workers.flush()]);
      expect(statements).toHaveBeenCalledTimes(1);
      const states = async (owner?: string) =>
        (await workers.list(owner)).map(({ id, state }) => [id, state]).toSorted();
      const both = [
        [one.worker_id, 'idle'],
        [two.worker_id, 'busy'],
      ].toSorted();
      expect(await states()).toEqual(both);
      // Of a later moment neither.
      const later = createWorkers({ db });
      later.seen(bob, one, 'busy');
      await later.disconnected(bob, one);
      expect(await states()).toEqual(both);
      await workers.disconnected(ada, one);
      await workers.disconnected(ada, two);
      // A busy one has not ended its job.
      expect(await states('ada')).toEqual([[two.worker_id, 'busy']]);
    });

    it('is written later where the database was away', async () => {
      const { db } = fixture().store;
      const workers = createWorkers({ db });
      const owner = testCaller('later');
      const worker = testWorker();
      workers.seen(owner, worker, 'idle');
      vi.spyOn(db, 'execute').mockImplementationOnce(() => {
        throw new Error('The database is away.');
      });
      await expect(workers.flush()).rejects.toThrow('away');
      await workers.flush();
      expect(await workers.list('later')).toMatchObject([{ id: worker.worker_id, state: 'idle' }]);
    });
  });
});
