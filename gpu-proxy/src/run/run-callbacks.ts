export type Say = (sentence: string) => void;
/** Runs the program with this socket; resolves to its exit status. */
export type Child = (socketPath: string) => Promise<number>;
