import type { Prediction } from '../../lib/contract/prediction';
import { HistoryItem } from './history-item';
import type { PredictionActions } from './result-card';

/** All predictions of this browser, newest first. */
export function History(props: {
  predictions: readonly Prediction[];
  shownId: string | null;
  busy: boolean;
  actions: PredictionActions;
  onShow: (id: string) => void;
}) {
  const { predictions, ...rest } = props;
  if (predictions.length === 0) return null;
  return (
    <section className="history" aria-labelledby="history-title">
      <h2 id="history-title">Past videos</h2>
      <ul>
        {predictions.map((prediction) => (
          <HistoryItem key={prediction.id} prediction={prediction} {...rest} />
        ))}
      </ul>
    </section>
  );
}
