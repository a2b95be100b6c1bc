import { sampleImagePath } from '../../lib/contract/request';
import { Picture } from './picture';

/** What a newcomer sees where the video will be. */
export function EmptyStage({ onSample }: { onSample: () => void }) {
  return (
    <section className="panel stage empty" aria-labelledby="empty-title">
      <h2 id="empty-title">One still becomes a video</h2>
      <p>
        Choose an image, say what should happen, and watch it move. Everything is computed on your
        own GPU: image, prompt and video never leave this browser.
      </p>
      <Picture src={sampleImagePath} alt="" width={1280} height={720} />
      <div className="actions">
        <button type="button" onClick={onSample}>
          Try the sample
        </button>
      </div>
    </section>
  );
}
