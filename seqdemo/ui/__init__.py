"""The app: pages and components. The server decodes; one compact payload a column goes to the page, which draws it.

assets     scripts and styles, joined
theme      colours and type for Gradio's own parts
fields     the options of a column as controls
checks     every check on what a browser or a program sends
service    models, runs and replays behind the pages; loads torch on first use
answers    a question from the page -> its payload
catalogue  what a page starts with: models, examples, frozen worked result
early      draws a page before Gradio's scripts have come
component  the one gr.HTML subclass every page is made of
pages      the five pages
api        the endpoints for programs
freeze     writes the frozen worked results
launch     builds and starts the app
"""
