import { type FinisherPart, partOfTool } from '../../lib/contract';
import { useLibrary } from '../library';
import { later } from './later';

const PartDownload = later(async () => (await import('./part-download')).PartDownload);

/** The download of a network that finishes videos; nothing where it is there. */
export function FinisherDownload({ part }: { part: FinisherPart }) {
  const library = useLibrary();
  if (library.status !== 'ready') return null;
  const tool = library.snapshot.tools.find(({ manifest }) => partOfTool(manifest) === part);
  if (!tool || tool.ready) return null;
  return <PartDownload entry={tool} component={part} name={tool.manifest.name} />;
}
