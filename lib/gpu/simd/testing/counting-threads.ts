import * as Comlink from 'comlink';
import { at } from '../../../contract';
import { access, type FunctionSource, op } from '../../../wasm/assembler';
import { handleMessages } from '../../messages';
import { SimdHeap } from '../heap';
import { SimdThreads } from '../threads';

const parts = 1000;

/** Adds to the number of a part. */
const adding: FunctionSource = {
  name: 'add',
  parameters: ['i32', 'i32'],
  body: (parameters) => {
    const [place, by] = [at(parameters, 0).get, at(parameters, 1).get];
    return [access('i32.store', [place, op('i32.add', access('i32.load', [place]), by)])];
  },
};

/** Runs jobs until helpers have computed some of their parts. */
async function addUp() {
  const heap = new SimdHeap(() => undefined);
  const threads = new SimdThreads(heap);
  const source = () => ({ functions: [adding], names: ['place', 'by'] as const });
  const sums = heap.allocate(4 * parts);
  let jobs = 0;
  while (jobs < 1000 || threads.helped < 2000) {
    threads.run('add', source, { place: [sums.at, 4], by: 1 }, parts);
    jobs += 1;
    // A worker starts while the one that made it handles messages.
    if (jobs % 100 === 0) await handleMessages();
    // Memory that grows between jobs is the helpers' as well.
    if (jobs === 500) heap.allocate(2 ** 24);
  }
  const found = new Int32Array(heap.memory.buffer, sums.at, parts);
  const { helped } = threads;
  threads.dispose();
  return { jobs, helped, wrong: found.filter((sum) => sum !== jobs).length };
}

Comlink.expose(addUp);
