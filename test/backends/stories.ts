/** How many stories are played against the model: more than usual by MILLRACE_STORIES, when somebody searches. */
export const stories = (usual: number): number => Number(process.env['MILLRACE_STORIES'] ?? usual)
