/** That of package.json. A house rule compares them. */
export const VERSION = '0.2.0';
