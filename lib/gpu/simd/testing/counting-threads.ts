import * as Comlink from 'comlink';
import { access, type FunctionSource, op } from '../../../wasm/assembler';
import { handleMessages } from '../../messages';
import { SimdHeap } from '../heap';
import { SimdThreads } from '../threads';

const parts = 1000;

/** Adds what its job says to the number of a part. */
const adding: FunctionSource = {
  name: 'part',
  parameters: ['i32', 'i32'],
  body: ([job, index], local) => {
    if (!job || !index) throw new TypeError('A part has two parameters.');
    const place = local('i32');
    const start = access('i32.load', [job.get]);
    const sum = op('i32.add', access('i32.load', [place.get]), access('i32.load', [job.get], 4));
    return [
      place.set(op('i32.add', start, op('i32.shl', index.get, [0x41, 2]))),
      access('i32.store', [place.get, sum]),
    ];
  },
};

/** Runs jobs until helpers have computed some of their parts. */
async function addUp() {
  const heap = new SimdHeap(() => undefined);
  const threads = new SimdThreads(heap);
  const kernel = threads.compile([adding]);
  const sums = heap.allocate(4 * parts);
  let jobs = 0;
  while (jobs < 1000 || threads.helped < 2000) {
    threads.run(kernel, [sums.at, 1], parts);
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
