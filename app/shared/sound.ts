/** The tones of the sound: frequency in Hz, and start in seconds. */
const tones = [
  { frequency: 587.33, at: 0 },
  { frequency: 880, at: 0.14 },
] as const;
/** Seconds until a tone has faded. */
const toneSeconds = 0.6;
/** Amplitude of a tone, 0 … 1. */
const loudness = 0.16;

/** Seconds of the whole sound. */
export const soundSeconds = 0.14 + toneSeconds;

/** Adds the sound of a finished video to an audio context, from its current time on. */
export function scheduleSound(context: BaseAudioContext): void {
  for (const { frequency, at } of tones) {
    const start = context.currentTime + at;
    const oscillator = new OscillatorNode(context, { frequency });
    const volume = new GainNode(context, { gain: 0 });
    // A jump of the amplitude is heard as a click.
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(loudness, start + 0.015);
    volume.gain.setTargetAtTime(0, start + 0.015, toneSeconds / 6);
    oscillator.connect(volume).connect(context.destination);
    oscillator.start(start);
    oscillator.stop(start + toneSeconds);
  }
}

/** Plays the sound of a finished video. Browsers stay silent before the first click on a page. */
export async function playSound(): Promise<void> {
  // Before that, a context would stay suspended, and say so in the console.
  if (!navigator.userActivation.hasBeenActive) return;
  const context = new AudioContext();
  try {
    scheduleSound(context);
    await new Promise((resolve) => setTimeout(resolve, soundSeconds * 1000 + 100));
  } finally {
    await context.close();
  }
}
