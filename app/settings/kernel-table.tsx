import { type Peak, peakRate } from '../../lib/gpu/kernels/peak-rate';
import type { TunedMode } from '../../lib/gpu/kernels/record';
import { t } from '../texts';
import '../texts/en/settings';

const families = [
  { family: 'linear', kind: 'linear', mode: 'exact' },
  { family: 'attention', kind: 'attention', mode: 'exact' },
  { family: 'convolution', kind: 'convolution', mode: 'exact' },
  { family: 'fastLinear', kind: 'linear', mode: 'fast' },
  { family: 'fastAttention', kind: 'attention', mode: 'fast' },
  { family: 'matrixAttention', kind: 'attention', mode: 'matrix' },
  { family: 'matrixConvolution', kind: 'convolution', mode: 'matrix' },
] as const;

/** The same in every language. */
const giga = (perSecond: number) => `${Math.round(perSecond / 1e9)} GFLOP/s`;

/** The variant that each family of kernels uses, and those that are not used. */
export function KernelTable({ tuned, peak }: { tuned: TunedMode; peak: Peak | null }) {
  const { winners, tried } = tuned;
  const failed = tried.filter(({ reason }) => reason !== null);
  return (
    <>
      <table className="plan-table full text-l kernel-table">
        <thead>
          <tr>
            <th scope="col">{t('settings.kernel')}</th>
            <th scope="col">{t('settings.speed')}</th>
            <th scope="col">{t('settings.ofPeak')}</th>
          </tr>
        </thead>
        <tbody>
          {families
            .filter(({ family }) => family in winners)
            .map(({ family, kind, mode }) => {
              const winner = winners[family];
              const rate = winner?.rate ?? null;
              const instead = t(`shared.kernels.${mode === 'exact' ? 'runtime' : 'exact'}`);
              // The peak of matrix units is not measured.
              const onMatrices = winner?.name.startsWith('matrix ') ?? false;
              const most = peak && !onMatrices && peakRate(peak, kind, mode === 'fast');
              const share = rate !== null && most ? rate / most : null;
              return (
                <tr key={family}>
                  <th scope="row">
                    {t(`settings.family.${family}`)}
                    <small>{winner ? winner.name : instead}</small>
                  </th>
                  <td>{rate === null ? '–' : giga(rate)}</td>
                  <td>{share === null ? '–' : `${Math.round(100 * share)} %`}</td>
                </tr>
              );
            })}
        </tbody>
      </table>
      {peak !== null && (
        <p className="field-hint">
          {t('settings.peakHint', { peak: giga(peak.multiplyAdd) })}
          {peak.integerDot !== null && 'fastLinear' in winners && (
            <> {t('settings.integerPeakHint', { peak: giga(peak.integerDot) })}</>
          )}
        </p>
      )}
      {failed.length > 0 && (
        <details className="kernel-failures">
          <summary>{t('settings.notUsed', { count: failed.length })}</summary>
          <ul lang="en">
            {failed.map(({ key, name, reason }) => (
              <li key={key}>
                {name}: {reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
