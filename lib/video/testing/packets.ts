import { ALL_FORMATS, BlobSource, EncodedPacketSink, Input } from 'mediabunny';
import { sha256 } from '../../contract';

/** The SHA-256 of each packet of a file's first video or audio track. */
export async function packetsOf(file: Blob, kind: 'video' | 'audio' = 'video') {
  const input = new Input({ source: new BlobSource(file), formats: ALL_FORMATS });
  const track =
    kind === 'video' ? await input.getPrimaryVideoTrack() : await input.getPrimaryAudioTrack();
  if (!track) throw new Error(`no ${kind} track`);
  const packets: string[] = [];
  for await (const { data } of new EncodedPacketSink(track).packets()) {
    packets.push(await sha256(data.slice()));
  }
  input.dispose();
  return packets;
}
