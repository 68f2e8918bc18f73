/** Where the API tells the story of one request. */
export const storyPath = (id: string): string => `/admin/requests/${encodeURIComponent(id)}`;
