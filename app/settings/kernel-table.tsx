import type { TunedMode } from '../../lib/gpu/kernels/record';
import { t } from '../texts';
import '../texts/en/settings';

const families = ['linear', 'attention', 'convolution', 'fastLinear', 'fastAttention'] as const;

/** The same in every language. */
const unit = 'GFLOP/s';

/** The variant that each family of kernels uses, and those that are not used. */
export function KernelTable({ tuned, peak }: { tuned: TunedMode; peak: number | null }) {
  const { winners, tried } = tuned;
  const failed = tried.filter(({ reason }) => reason !== null);
  return (
    <>
      <table className="plan-table kernel-table">
        <thead>
          <tr>
            <th scope="col">{t('settings.kernel')}</th>
            <th scope="col">{t('settings.speed')}</th>
            <th scope="col">{t('settings.ofPeak')}</th>
          </tr>
        </thead>
        <tbody>
          {families
            .filter((family) => family in winners)
            .map((family) => {
              const winner = winners[family];
              const rate = winner?.rate ?? null;
              // The peak is that of multiply-adds, and what takes their place is exact.
              const fast = family.startsWith('fast');
              const instead = t(fast ? 'shared.kernels.exact' : 'shared.kernels.runtime');
              const share = fast || rate === null || !peak ? null : rate / peak;
              return (
                <tr key={family}>
                  <th scope="row">
                    {t(`settings.family.${family}`)}
                    <small>{winner ? winner.name : instead}</small>
                  </th>
                  <td>{rate === null ? '–' : `${Math.round(rate / 1e9)} ${unit}`}</td>
                  <td>{share === null ? '–' : `${Math.round(100 * share)} %`}</td>
                </tr>
              );
            })}
        </tbody>
      </table>
      {peak !== null && (
        <p className="field-hint">
          {t('settings.peakHint', { peak: `${Math.round(peak / 1e9)} ${unit}` })}
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
