import { at, safetyThreshold } from '../contract';
import {
  Graph,
  memoised,
  plainLinear,
  type VisionTransformer,
  visionNorm,
  visionRows,
} from '../graph';
import { cutSquares, normalise } from '../pipeline/vision/squares';
import { VisionTower } from '../pipeline/vision/tower';
import type { Checkpoint } from '../weights';
import type { CheckerConfig } from './checker-config';
import { headTensors, labelCount, readTensor } from './checker-weights';
import type { Classifier } from './classifier';

/** A vision transformer whose files were read. */
export interface VitNetwork {
  readonly config: CheckerConfig;
  readonly vit: VisionTransformer;
  readonly checkpoint: Pick<Checkpoint, 'read'>;
}

/** `y = LN(z)` [R, D] and its logits [R, 2]; those of the first row, the class token, count. */
const head = memoised((vit: VisionTransformer) => {
  const g = new Graph('safety-checker-head');
  const y = visionNorm(g.input('x', ['R', vit.channels]), 'norm', vit);
  g.output('norm', y);
  g.output('logits', plainLinear(y, 'head', vit.channels, labelCount));
  return g;
});

/** A vision transformer as a classifier. */
export function vitClassifier({ config, vit, checkpoint }: VitNetwork): Classifier {
  const { layout, unsafeIndex, preprocessing } = config;
  const read = (name: string) => readTensor(checkpoint, layout, name);
  return {
    threshold: safetyThreshold,
    cut: (image) => cutSquares(image, preprocessing),
    async open(backend, signal) {
      const options = { read, resident: true, signal, graphs: [head(vit)] };
      const tower = await VisionTower.open(backend, vit, options);
      const { scope, executor, x } = tower;
      const rows = visionRows(vit);
      const norm = scope.float32([rows, vit.channels], 'activations');
      const logits = scope.float32([rows, labelCount], 'activations');
      const first = async (of: typeof x, width: number) => (await backend.read(of)).slice(0, width);
      return {
        async logits(values, onHidden) {
          await tower.compute(
            normalise(values, preprocessing),
            onHidden && ((layer, hidden) => onHidden(`hidden_${layer}`, hidden)),
          );
          const weights = await tower.tensors(headTensors(vit));
          await executor.run(head(vit), { x, norm, logits, ...weights });
          onHidden?.('norm_cls', await first(norm, vit.channels));
          return first(logits, labelCount);
        },
        dispose: () => tower.dispose(),
      };
    },
    // The softmax over two logits.
    unsafe: (logits) => 1 / (1 + Math.exp(at(logits, 1 - unsafeIndex) - at(logits, unsafeIndex))),
  };
}
