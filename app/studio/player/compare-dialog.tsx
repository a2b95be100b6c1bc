import { useLiveQuery } from 'dexie-react-hooks';
import { useState } from 'react';
import type { Completed, Prediction } from '../../../lib/contract/prediction';
import { Modal } from '../../models/modal';
import { getRunner } from '../../runner';
import { Difference } from '../prompt-record';
import { ComparePlayers } from './compare-players';
import { settingDifferences } from './setting-differences';

/**
 * Two finished videos over each other, with the settings in which they differ.
 *
 * @param props.second is chosen here when absent: first, the newest with the same prompt
 */
export function CompareDialog(props: {
  first: Completed;
  second?: Completed;
  onClose: () => void;
}) {
  const { first, onClose } = props;
  const others = useLiveQuery(() => otherVideos(first.id), [first.id]);
  const [chosen, setChosen] = useState(props.second?.id);
  const second =
    others?.find(({ id }) => id === chosen) ??
    others?.find(({ parameters }) => parameters.prompt === first.parameters.prompt) ??
    others?.[0];
  return (
    <Modal titleId="compare-title" className="player-dialog" onClose={onClose}>
      <h2 id="compare-title">Compare</h2>
      <div className="compare-names">
        <p>
          <strong>Left</strong> {videoLabel(first)}
        </p>
        <label>
          <strong>Right</strong>
          <select
            value={second?.id ?? ''}
            disabled={!second}
            onChange={(event) => setChosen(event.target.value)}
          >
            {others?.map((other) => (
              <option key={other.id} value={other.id}>
                {videoLabel(other)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {second && <ComparePlayers key={second.id} {...{ first, second }} />}
      {second && <Differences {...{ first, second }} />}
      {others?.length === 0 && <p className="dialog-text">There is no other finished video.</p>}
      <div className="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Modal>
  );
}

function Differences({ first, second }: { first: Completed; second: Completed }) {
  const rows = settingDifferences(first, second);
  if (rows.length === 0) return <p className="field-hint">Both have the same settings.</p>;
  return (
    <table className="setting-differences">
      <caption className="visually-hidden">Settings in which they differ</caption>
      <thead>
        <tr>
          <th scope="col">Setting</th>
          <th scope="col">Left</th>
          <th scope="col">Right</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td>{row.first || 'None'}</td>
            <td>
              {row.first && row.second && row.name.toLowerCase().includes('prompt') ? (
                <Difference before={row.first} after={row.second} />
              ) : (
                row.second || 'None'
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** All other finished videos, newest first. */
async function otherVideos(id: string): Promise<readonly Completed[]> {
  const all = await getRunner().store.list();
  const isOther = (row: Prediction): row is Completed =>
    row.status === 'completed' && row.id !== id;
  return all.filter(isOther);
}

/** Longest prompt in a label, in characters. */
const labelLength = 48;

function videoLabel({ parameters, result, createdAt }: Completed): string {
  const time = new Date(createdAt).toLocaleString(undefined, {
    ...{ month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' },
  });
  const prompt = [...parameters.prompt];
  const short = prompt.length > labelLength ? [...prompt.slice(0, labelLength), '…'] : prompt;
  return `${time} · Seed ${result.seed} · ${short.join('')}`;
}
