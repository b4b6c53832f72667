/** The version in package.json. A house rule compares the two. */
export const VERSION = '0.2.0';
