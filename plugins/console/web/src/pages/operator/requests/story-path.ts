/** The API's path of one request. */
export const storyPath = (id: string): string => `/admin/requests/${encodeURIComponent(id)}`;
