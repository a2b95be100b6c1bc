/** The name of the app, in every language. */
export const brand = 'Kinora';
