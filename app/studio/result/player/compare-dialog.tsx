import { useLiveQuery } from 'dexie-react-hooks';
import { useState } from 'react';
import type { Completed, Prediction } from '../../../../lib/contract';
import { Modal } from '../../../models/modal';
import { getRunner } from '../../../runner';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { formatDate } from '../../../texts/format';
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
    <Modal title={t('result.compare')} width={1080} close={t('result.close')} onClose={onClose}>
      <div className="compare-names stack gap-8-16 halves text-l break">
        <p className="stack gap-4">
          <strong>{t('result.left')}</strong> {videoLabel(first)}
        </p>
        <label className="stack gap-4">
          <strong>{t('result.right')}</strong>
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
      {second && <ComparePlayers key={second.id} first={first} second={second} />}
      {second && <Differences first={first} second={second} />}
      {others?.length === 0 && <p>{t('result.noOther')}</p>}
    </Modal>
  );
}

function Differences({ first, second }: { first: Completed; second: Completed }) {
  const rows = settingDifferences(first, second);
  if (rows.length === 0) return <p className="field-hint">{t('result.sameSettings')}</p>;
  return (
    <table className="setting-differences break">
      <caption className="visually-hidden">{t('result.differences')}</caption>
      <thead>
        <tr>
          <th scope="col">{t('result.setting')}</th>
          <th scope="col">{t('result.left')}</th>
          <th scope="col">{t('result.right')}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.setting}>
            <th scope="row">{t(`result.settings.${row.setting}`)}</th>
            <td>{row.first || t('shared.none')}</td>
            <td>{row.second || t('shared.none')}</td>
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
  const time = formatDate(createdAt, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  });
  const prompt = [...parameters.prompt];
  const short = prompt.length > labelLength ? [...prompt.slice(0, labelLength), '…'] : prompt;
  return t('result.videoLabel', { time, seed: `${result.seed}`, prompt: short.join('') });
}
