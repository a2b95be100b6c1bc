import { Fragment, type ReactNode, useEffect, useRef } from 'react';
import type { ModelEntry } from '../../lib/contract/library';
import { licencesOf, type Precision } from '../../lib/contract/manifest';
import { Problem } from '../shared/messages';
import { Modal } from './modal';
import type { Sheet } from './page-state';
import { PlanTable } from './plan-table';
import { PrecisionChoices } from './precision-choices';
import type { GpuMemory } from './use-gpu-memory';

/** What a download is and takes, before a byte of it is fetched. */
export function DownloadSheet(props: {
  sheet: Sheet;
  entry: ModelEntry;
  hub: string;
  gpu: GpuMemory;
  onMeasure: (wanted: number) => void;
  onPrecision: (precision: Precision) => void;
  onDownload: (precision: Precision) => void;
  onClose: () => void;
}) {
  const { sheet, entry, hub, gpu, onPrecision, onDownload, onClose } = props;
  const { manifest } = entry;
  const { plan, precision } = sheet;
  const known = plan.status === 'known' ? plan.plan : null;
  const fits = known !== null && (known.left >= 0 || known.storage.atLeast === true);
  return (
    <Modal titleId="sheet-title" className="sheet" onClose={onClose}>
      <h2 id="sheet-title" tabIndex={-1}>
        Download {manifest.name}
      </h2>
      <p className="dialog-text">{manifest.description}</p>
      <p className="field-hint">
        From {hostOf(hub)}:{' '}
        {licencesOf(manifest)
          .filter(({ repositories }) => repositories.length > 0)
          .map(({ licence, repositories }, i) => (
            <Fragment key={licence.name + licence.url}>
              {i > 0 && '; '}
              {repositories.join(', ')} (<Licence {...licence} />)
            </Fragment>
          ))}
        .
      </p>
      {manifest.choices.length > 0 && (
        <PrecisionChoices
          choices={manifest.choices}
          chosen={precision}
          gpu={gpu}
          onChoose={onPrecision}
          onMeasure={props.onMeasure}
        />
      )}
      <div className="plan" aria-live="polite" aria-busy={plan.status === 'asking'}>
        {plan.status === 'asking' && (
          <>
            <p className="field-hint">Asking for the size of every part …</p>
            <progress aria-label="Asking for sizes" />
          </>
        )}
        {plan.status === 'failed' && (
          <InView>
            <Problem error={plan.error}>
              <button type="button" onClick={() => onPrecision(precision)}>
                Try again
              </button>
            </Problem>
          </InView>
        )}
        {known && <PlanTable plan={known} />}
      </div>
      <div className="actions">
        <button
          type="button"
          className="primary"
          disabled={!fits}
          onClick={() => onDownload(precision)}
        >
          Download
        </button>
        <button type="button" onClick={onClose}>
          Not now
        </button>
      </div>
    </Modal>
  );
}

/** What must not stay below the edge of a small screen. */
function InView({ children }: { children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.scrollIntoView({ block: 'end' });
  }, []);
  return <div ref={place}>{children}</div>;
}

/** The licence with its text, where there is an address of it. */
export function Licence({ name, url }: { name: string; url?: string | undefined }) {
  if (!url) return <>{name}</>;
  return (
    <a href={url} target="_blank" rel="noreferrer">
      {name}
    </a>
  );
}

function hostOf(hub: string): string {
  return URL.canParse(hub) ? new URL(hub).host : hub;
}
