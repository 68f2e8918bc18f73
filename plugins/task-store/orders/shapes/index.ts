/** All client protocols for images and videos. */
export { completedFrame, errorFrame, imageAnswer } from './image-answer.ts';
export { imageEdit } from './image-edit.ts';
export { imageTask } from './image-task.ts';
export { openaiVideos } from './openai-videos.ts';
export { listedVideos, videoTask } from './video-task.ts';
