/** How many stories are played against the model: MILLRACE_STORIES raises it for a longer search. */
export const stories = (usual: number): number => Number(process.env['MILLRACE_STORIES'] ?? usual)
