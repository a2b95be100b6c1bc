import { useLiveQuery } from 'dexie-react-hooks';
import type { Prediction } from '../../../lib/contract';
import { getRunner } from '../../runner';
import { FramedPicture } from '../form/framed-picture';

/** The images of a request as its video shows them. */
export function RunPictures({ prediction }: { prediction: Prediction }) {
  const { id, parameters, options } = prediction;
  const { size } = parameters;
  const source = useLiveQuery(() => getRunner().store.source(id), [id]);
  if (!source) return null;
  const { image, lastImage } = source;
  return (
    <div className="run-pictures row">
      <FramedPicture image={{ file: image, framing: options.framing }} size={size} />
      {lastImage && (
        <FramedPicture
          image={{ file: lastImage, framing: options.lastImage?.framing }}
          size={size}
        />
      )}
    </div>
  );
}
