import { formatBytes } from '../../lib/contract/format';
import { hasSafetyChecker, type ModelEntry } from '../../lib/contract/library';
import { isConverted } from '../../lib/pipeline/installation';
import { Fact } from '../shared/fact';
import { Licence } from './licence';
import { type ModelView, precisionName, storedAdapter } from './model-view';
import { downloadSizes, formatRelativeError } from './wording';

const origins = {
  bundled: 'Comes with Kinora',
  listed: 'From the hub',
  added: 'Added by you',
} as const;

/** What is known of a model, in short. */
export function ModelFacts(props: {
  entry: ModelEntry;
  view: ModelView;
  /** Name of another model whose safety checker serves this one; null without one. */
  sharedChecker: string | null;
}) {
  const { entry, view, sharedChecker } = props;
  const { manifest, origin, precision, stored } = entry;
  const { bytesStored, verifiedAt, worst } = view;
  const downloads = downloadSizes(manifest.choices);
  const few = storedAdapter(entry);
  const types = [
    ...new Set(
      stored.filter(({ component }) => isConverted(component)).map(({ sourceType }) => sourceType),
    ),
  ];
  return (
    <dl className="facts">
      <Fact name="Licence">
        <Licence {...manifest.licence} />
      </Fact>
      <Fact name="Safety checker">
        {hasSafetyChecker(entry)
          ? 'Installed'
          : sharedChecker
            ? `Installed with ${sharedChecker}`
            : 'Missing'}
      </Fact>
      <Fact name="Origin">{origins[origin]}</Fact>
      {view.status === 'absent' && downloads && <Fact name="Download">{downloads}</Fact>}
      {precision && <Fact name="Precision">{precisionName(manifest, precision)}</Fact>}
      {few && (
        <Fact name="Few-step adapter">
          {few.adapter.name} (<Licence {...few.licence} />
          {!few.adapter.licence.commercial && ', not for commercial use'})
        </Fact>
      )}
      {types.length > 0 && <Fact name="Made from">{types.join(', ')}</Fact>}
      {bytesStored > 0 && <Fact name="In this browser">{formatBytes(bytesStored)}</Fact>}
      {stored.length > 0 && (
        <Fact name="Largest error">
          {worst ? (
            <span title={worst.tensor}>{formatRelativeError(worst.relativeError)}</span>
          ) : (
            'None, exact'
          )}
        </Fact>
      )}
      {verifiedAt && (
        <Fact name="Verified">
          <span className="tick">✓</span> <time dateTime={verifiedAt}>{formatDay(verifiedAt)}</time>
        </Fact>
      )}
    </dl>
  );
}

function formatDay(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}
