/** The still that comes with Kinora, as a path below the app's own origin (a file in `public/`). */
export const sampleImagePath = '/samples/still.jpg';

/** What the sample still may become. */
export const samplePrompt =
  'Dusk over a mountain lake. A small sailing boat glides slowly to the right, the water ripples and ' +
  'glitters in the last light, thin clouds drift across an orange sky. Calm, cinematic, static camera.';
