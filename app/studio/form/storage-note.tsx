import { useEffect, useState } from 'react';
import { chosenSwitches, formatBytes, formatOfFile, parameterRanges } from '../../../lib/contract';
import { bitRateOf } from '../../../lib/video/bit-rate';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { toNumber } from './form-state';

/**
 * Says before a run that its videos will not fit into the storage of this browser; nothing where they fit, or where
 * the browser does not tell.
 *
 * @param props.videos how many are made of the form
 * @param props.frameRate frames per second of the model
 */
export function StorageNote({ videos, frameRate }: { videos: number; frameRate: number }) {
  const { form, revision } = useFields();
  const { size, duration } = form.values;
  const { min, max } = parameterRanges.duration;
  const seconds = Math.min(max, Math.max(min, toNumber(duration) || min));
  const rate = bitRateOf(formatOfFile({ ...chosenSwitches(form.values), size }, frameRate));
  // The images are stored with it.
  const { image, lastImage } = form.files;
  const one = (rate / 8) * seconds + (image?.file.size ?? 0) + (lastImage?.file.size ?? 0);
  const bytes = one * videos;
  const fits = useRoom(Math.ceil(bytes), revision);
  if (fits !== false) return null;
  return (
    <p className="problem" data-code="STORAGE_FULL" role="status">
      {t('form.noRoom', { videos, bytes: formatBytes(bytes) })}
    </p>
  );
}

/** Whether this browser can store so many bytes; null while that is not known. */
function useRoom(bytes: number, revision: string): boolean | null {
  const [fits, setFits] = useState<boolean | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: A run that has ended has written or deleted files.
  useEffect(() => {
    let current = true;
    const ask = async () => {
      const { hasRoom } = await import('../../../lib/predictions/opfs');
      const answer = await hasRoom(bytes);
      if (current) setFits(answer);
    };
    const check = () => void ask().catch(() => {});
    check();
    // A person comes back who has freed space elsewhere.
    window.addEventListener('focus', check);
    return () => {
      current = false;
      window.removeEventListener('focus', check);
    };
  }, [bytes, revision]);
  return fits;
}
